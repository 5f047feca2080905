package volumes

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"k8s.io/klog/v2"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

// register serves the driver and announces it to the kubelet, which watches
// its plugins_registry folder and then makes the CSINode entry itself: no
// sidecar is needed. It returns only on failure.
func register(kubelet string, driver *service) error {
	socket := filepath.Join(kubelet, "plugins", DriverName, "csi.sock")
	failed := make(chan error)
	go func() {
		failed <- serve(socket, func(server *grpc.Server) {
			csi.RegisterIdentityServer(server, driver)
			csi.RegisterNodeServer(server, driver)
		})
	}()
	go func() {
		failed <- serve(filepath.Join(kubelet, "plugins_registry", DriverName+"-reg.sock"), func(server *grpc.Server) {
			registration.RegisterRegistrationServer(server, &announcement{socket: socket})
		})
	}()
	return <-failed
}

func serve(socket string, add func(*grpc.Server)) error {
	if err := os.MkdirAll(filepath.Dir(socket), 0o755); err != nil {
		return err
	}
	// A node that lost power left its sockets behind.
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	add(server)
	return server.Serve(listener)
}

type announcement struct {
	registration.UnimplementedRegistrationServer
	socket string
}

func (a *announcement) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{
		Type: registration.CSIPlugin, Name: DriverName, Endpoint: a.socket, SupportedVersions: []string{"1.0.0"},
	}, nil
}

func (*announcement) NotifyRegistrationStatus(_ context.Context, status *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	if status.PluginRegistered {
		klog.Info("the kubelet knows the driver")
	} else {
		klog.Errorf("the kubelet refused the driver: %s", status.Error)
	}
	return &registration.RegistrationStatusResponse{}, nil
}
