package volumes

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
)

// Node runs the CSI node service of one node, inside that node's namespaces.
func Node() {
	node := flag.String("node", "", "name of the node")
	directory := flag.String("volumes", "", "folder of the volumes' files")
	kubelet := flag.String("kubelet", "/var/lib/kubelet", "the kubelet's folder")
	klog.InitFlags(nil)
	flag.Parse()
	if err := os.MkdirAll(*directory, 0o755); err != nil {
		klog.Fatal(err)
	}
	klog.Fatal(register(*kubelet, &service{node: *node, directory: *directory}))
}

type service struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	node, directory string
}

func (*service) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: DriverName, VendorVersion: "1"}, nil
}

func (*service) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (*service) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (s *service) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: s.node}, nil
}

func (*service) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	response := &csi.NodeGetCapabilitiesResponse{}
	for _, kind := range []csi.NodeServiceCapability_RPC_Type{
		csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
	} {
		response.Capabilities = append(response.Capabilities, &csi.NodeServiceCapability{
			Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: kind}},
		})
	}
	return response, nil
}

// NodeStageVolume makes the file if this is its first use and mounts it.
func (s *service) NodeStageVolume(_ context.Context, request *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	image, target := imageOf(s.directory, request.VolumeId), request.StagingTargetPath
	if err := s.ensureImage(image, request.VolumeContext[attributeBytes]); err != nil {
		return nil, err
	}
	if mounted(target) {
		return &csi.NodeStageVolumeResponse{}, nil
	}
	// All nodes share one kernel: two mounts of one file would destroy it.
	users, err := run("losetup", "--noheadings", "--output", "NAME", "--associated", image)
	if err != nil {
		return nil, err
	}
	if users != "" {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is still in use (%s)", request.VolumeId, users)
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	options := append([]string{"loop"}, request.VolumeCapability.GetMount().GetMountFlags()...)
	_, err = run("mount", "-t", fileSystem, "-o", strings.Join(options, ","), image, target)
	return &csi.NodeStageVolumeResponse{}, err
}

// ensureImage never touches an existing file: it is somebody's data. A crash
// in the middle leaves only the temporary file, which the next call overwrites.
func (s *service) ensureImage(image, bytes string) error {
	_, err := os.Stat(image)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	size, err := strconv.ParseInt(bytes, 10, 64)
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "attribute %s: %v", attributeBytes, err)
	}
	unfinished := image + ".unfinished"
	file, err := os.Create(unfinished)
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	err = errors.Join(file.Truncate(size), file.Close())
	if err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	if _, err := run("mkfs.xfs", "-q", "-f", "-K", unfinished); err != nil {
		return err
	}
	return os.Rename(unfinished, image)
}

func (*service) NodeUnstageVolume(_ context.Context, request *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	return &csi.NodeUnstageVolumeResponse{}, unmount(request.StagingTargetPath)
}

func (*service) NodePublishVolume(_ context.Context, request *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	target := request.TargetPath
	if mounted(target) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if _, err := run("mount", "--bind", request.StagingTargetPath, target); err != nil {
		return nil, err
	}
	if request.Readonly {
		if _, err := run("mount", "-o", "remount,bind,ro", target); err != nil {
			return nil, errors.Join(err, unmount(target))
		}
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

func (*service) NodeUnpublishVolume(_ context.Context, request *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if err := unmount(request.TargetPath); err != nil {
		return nil, err
	}
	if err := os.Remove(request.TargetPath); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}

func (*service) NodeGetVolumeStats(_ context.Context, request *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	var stat unix.Statfs_t
	if err := unix.Statfs(request.VolumePath, &stat); err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	block := stat.Bsize
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{
			Unit: csi.VolumeUsage_BYTES, Total: int64(stat.Blocks) * block,
			Available: int64(stat.Bavail) * block, Used: int64(stat.Blocks-stat.Bfree) * block,
		},
		{
			Unit: csi.VolumeUsage_INODES, Total: int64(stat.Files),
			Available: int64(stat.Ffree), Used: int64(stat.Files - stat.Ffree),
		},
	}}, nil
}

// NodeExpandVolume grows the file, then the loop device, then the file system.
func (s *service) NodeExpandVolume(_ context.Context, request *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	image, want := imageOf(s.directory, request.VolumeId), request.CapacityRange.GetRequiredBytes()
	stat, err := os.Stat(image)
	if err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	if want > stat.Size() {
		if err := os.Truncate(image, want); err != nil {
			return nil, status.Error(codes.Internal, err.Error())
		}
	}
	device, err := run("findmnt", "-nro", "SOURCE", "-T", request.StagingTargetPath)
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(device, "/dev/loop") {
		return nil, status.Errorf(codes.Internal, "%s is mounted from %q, not from a loop device", request.StagingTargetPath, device)
	}
	if _, err := run("losetup", "--set-capacity", device); err != nil {
		return nil, err
	}
	_, err = run("xfs_growfs", request.StagingTargetPath)
	return &csi.NodeExpandVolumeResponse{CapacityBytes: want}, err
}
