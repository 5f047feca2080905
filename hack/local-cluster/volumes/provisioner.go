package volumes

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

// Provisioner runs the controller side: volumes come with their claims and go
// with them, and grow when a claim asks for more.
func Provisioner() {
	kubeconfig := flag.String("kubeconfig", "", "path of the kubeconfig")
	nodes := flag.String("nodes", "", "folder with one folder per node, volumes below <node>/volumes")
	klog.InitFlags(nil)
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		klog.Fatal(err)
	}
	config.QPS, config.Burst = 50, 100
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		klog.Fatal(err)
	}
	ctx := context.Background()
	// The constructor writes to client-go's global scheme, which every request
	// reads: nothing may ask the API server before it has returned.
	provisioning := controller.NewProvisionController(ctx, client, DriverName, provisioner{nodes: *nodes},
		controller.LeaderElection(false), controller.Threadiness(4))
	go expandForever(ctx, client)
	provisioning.Run(ctx)
}

func expandForever(ctx context.Context, client kubernetes.Interface) {
	for ; ; time.Sleep(time.Second) {
		if err := expandAll(ctx, client); err != nil {
			klog.Warningf("expand: %v", err)
		}
	}
}

type provisioner struct{ nodes string }

func (provisioner) SupportsBlock(context.Context) bool { return false }

func (p provisioner) volumes(node string) string {
	return filepath.Join(p.nodes, filepath.Base(node), "volumes")
}

// Provision only promises: the node makes the file when a Pod first needs it.
func (p provisioner) Provision(_ context.Context, options controller.ProvisionOptions) (*core.PersistentVolume, controller.ProvisioningState, error) {
	node := options.SelectedNodeName
	if node == "" {
		return nil, controller.ProvisioningFinished, errors.New("the StorageClass must say volumeBindingMode: WaitForFirstConsumer")
	}
	if _, err := os.Stat(p.volumes(node)); err != nil {
		return nil, controller.ProvisioningReschedule, err
	}
	size := options.PVC.Spec.Resources.Requests[core.ResourceStorage]
	if size.Value() < bytesMin {
		return nil, controller.ProvisioningFinished, fmt.Errorf("%s is too small: a volume has at least %d MiB", size.String(), bytesMin>>20)
	}
	return &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: options.PVName},
		Spec: core.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *options.StorageClass.ReclaimPolicy,
			AccessModes:                   options.PVC.Spec.AccessModes,
			MountOptions:                  options.StorageClass.MountOptions,
			Capacity:                      core.ResourceList{core.ResourceStorage: size},
			NodeAffinity:                  only(node),
			PersistentVolumeSource: core.PersistentVolumeSource{CSI: &core.CSIPersistentVolumeSource{
				Driver: DriverName, VolumeHandle: options.PVName, FSType: fileSystem,
				VolumeAttributes: map[string]string{
					attributeBytes: strconv.FormatInt(size.Value(), 10),
					attributeNode:  node,
				},
			}},
		},
	}, controller.ProvisioningFinished, nil
}

func only(node string) *core.VolumeNodeAffinity {
	return &core.VolumeNodeAffinity{Required: &core.NodeSelector{NodeSelectorTerms: []core.NodeSelectorTerm{{
		MatchExpressions: []core.NodeSelectorRequirement{{
			Key: core.LabelHostname, Operator: core.NodeSelectorOpIn, Values: []string{node},
		}},
	}}}}
}

// Delete removes the file. The controller calls it only after the claim is
// gone, and a Pod that still has the volume mounted keeps its claim.
func (p provisioner) Delete(_ context.Context, volume *core.PersistentVolume) error {
	csi := volume.Spec.CSI
	if csi == nil || csi.Driver != DriverName {
		return &controller.IgnoredError{Reason: "the volume has another driver"}
	}
	err := os.Remove(imageOf(p.volumes(csi.VolumeAttributes[attributeNode]), csi.VolumeHandle))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
