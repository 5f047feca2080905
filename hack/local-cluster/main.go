// Command localkube is every Go program of the local cluster in one binary:
// the Kubernetes components, etcd, kubectl, CoreDNS, and the small parts that
// this project adds (volumes, forward). It is for tests and the demo; the
// product never needs it.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"katazuke.dev/local-cluster/forward"
	"katazuke.dev/local-cluster/volumes"
)

// The Kubernetes components look at os.Args[0], so the name of the program to
// run may come from the file's name (a symbolic link) or from the first argument.
func program() string {
	name := filepath.Base(os.Args[0])
	if name == "localkube" && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	return name
}

func main() {
	switch name := program(); name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "coredns":
		coremain.Run()
	case "volume-provisioner":
		volumes.Provisioner()
	case "volume-node":
		volumes.Node()
	case "forward":
		forward.Main()
	default:
		os.Exit(cli.Run(component(name)))
	}
}

func component(name string) *cobra.Command {
	switch name {
	case "kube-apiserver":
		return apiserver.NewAPIServerCommand()
	case "kube-controller-manager":
		return controllers.NewControllerManagerCommand()
	case "kube-scheduler":
		return scheduler.NewSchedulerCommand()
	case "kube-proxy":
		return proxy.NewProxyCommand()
	case "kubelet":
		return kubelet.NewKubeletCommand(context.Background())
	case "kubectl":
		return kubectl.NewDefaultKubectlCommand()
	}
	fmt.Fprintf(os.Stderr, "localkube: there is no program named %q in it\n", name)
	os.Exit(2)
	return nil
}
