package volumes

import (
	"context"
	"flag"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"k8s.io/klog/v2"
	regapi "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

type drv struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	name, node, dir string
}

func sh(args ...string) error {
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	klog.Infof("%s: %v %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	if err != nil {
		return status.Errorf(codes.Internal, "%s: %v: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

func mounted(p string) bool {
	b, _ := os.ReadFile("/proc/self/mountinfo")
	for _, l := range strings.Split(string(b), "\n") {
		if f := strings.Fields(l); len(f) > 4 && f[4] == p {
			return true
		}
	}
	return false
}

func (d *drv) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "1"}, nil
}
func (d *drv) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}
func (d *drv) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}
func (d *drv) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}
func (d *drv) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	r := &csi.NodeGetCapabilitiesResponse{}
	for _, t := range []csi.NodeServiceCapability_RPC_Type{csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME, csi.NodeServiceCapability_RPC_EXPAND_VOLUME, csi.NodeServiceCapability_RPC_GET_VOLUME_STATS} {
		r.Capabilities = append(r.Capabilities, &csi.NodeServiceCapability{Type: &csi.NodeServiceCapability_Rpc{Rpc: &csi.NodeServiceCapability_RPC{Type: t}}})
	}
	return r, nil
}
func (d *drv) img(id string) string { return filepath.Join(d.dir, id+".img") }

func (d *drv) NodeStageVolume(_ context.Context, r *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	img := d.img(r.VolumeId)
	fs := r.VolumeCapability.GetMount().GetFsType()
	if fs == "" {
		fs = "ext4"
	}
	if _, err := os.Stat(img); os.IsNotExist(err) {
		tmp := img + ".tmp"
		f, err := os.Create(tmp)
		if err != nil {
			return nil, err
		}
		n, _ := strconv.ParseInt(r.VolumeContext["size"], 10, 64)
		err = f.Truncate(n)
		f.Close()
		if err != nil {
			return nil, err
		}
		args := []string{"mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1,lazy_journal_init=1,nodiscard", tmp}
		if fs == "xfs" {
			args = []string{"mkfs.xfs", "-q", "-K", tmp}
		}
		if err := sh(args...); err != nil {
			return nil, err
		}
		if err := os.Rename(tmp, img); err != nil {
			return nil, err
		}
	}
	if mounted(r.StagingTargetPath) {
		return &csi.NodeStageVolumeResponse{}, nil
	}
	// one kernel serves all nodes: a second mount of the image would corrupt it
	if out, _ := exec.Command("losetup", "-nO", "NAME", "-j", img).Output(); len(out) > 0 {
		return nil, status.Errorf(codes.FailedPrecondition, "volume %s is still in use (%s)", r.VolumeId, strings.TrimSpace(string(out)))
	}
	os.MkdirAll(r.StagingTargetPath, 0o755)
	opts := strings.Join(append([]string{"loop"}, r.VolumeCapability.GetMount().GetMountFlags()...), ",")
	return &csi.NodeStageVolumeResponse{}, sh("mount", "-t", fs, "-o", opts, img, r.StagingTargetPath)
}
func (d *drv) NodeUnstageVolume(_ context.Context, r *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if mounted(r.StagingTargetPath) {
		if err := sh("umount", r.StagingTargetPath); err != nil {
			return nil, err
		}
	}
	return &csi.NodeUnstageVolumeResponse{}, nil
}
func (d *drv) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if mounted(r.TargetPath) {
		return &csi.NodePublishVolumeResponse{}, nil
	}
	os.MkdirAll(r.TargetPath, 0o755)
	if err := sh("mount", "--bind", r.StagingTargetPath, r.TargetPath); err != nil {
		return nil, err
	}
	if r.Readonly {
		if err := sh("mount", "-o", "remount,bind,ro", r.TargetPath); err != nil {
			return nil, err
		}
	}
	return &csi.NodePublishVolumeResponse{}, nil
}
func (d *drv) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if mounted(r.TargetPath) {
		if err := sh("umount", r.TargetPath); err != nil {
			return nil, err
		}
	}
	os.Remove(r.TargetPath)
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
func (d *drv) NodeGetVolumeStats(_ context.Context, r *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(r.VolumePath, &s); err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	b := int64(s.Bsize)
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: int64(s.Blocks) * b, Available: int64(s.Bavail) * b, Used: int64(s.Blocks-s.Bfree) * b},
		{Unit: csi.VolumeUsage_INODES, Total: int64(s.Files), Available: int64(s.Ffree), Used: int64(s.Files - s.Ffree)},
	}}, nil
}
func (d *drv) NodeExpandVolume(_ context.Context, r *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	img := d.img(r.VolumeId)
	n := r.CapacityRange.GetRequiredBytes()
	st, err := os.Stat(img)
	if err != nil {
		return nil, status.Error(codes.NotFound, err.Error())
	}
	if n > st.Size() {
		if err := os.Truncate(img, n); err != nil {
			return nil, err
		}
	}
	out, err := exec.Command("findmnt", "-nro", "SOURCE,FSTYPE", "-T", r.StagingTargetPath).Output()
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	f := strings.Fields(string(out))
	if len(f) != 2 || !strings.HasPrefix(f[0], "/dev/loop") {
		return nil, status.Errorf(codes.Internal, "not a loop mount: %q", out)
	}
	if err := sh("losetup", "-c", f[0]); err != nil {
		return nil, err
	}
	if f[1] == "xfs" {
		err = sh("xfs_growfs", r.StagingTargetPath)
	} else {
		err = sh("resize2fs", f[0])
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: n}, err
}

type reg struct {
	regapi.UnimplementedRegistrationServer
	name, sock string
}

func (r *reg) GetInfo(context.Context, *regapi.InfoRequest) (*regapi.PluginInfo, error) {
	return &regapi.PluginInfo{Type: regapi.CSIPlugin, Name: r.name, Endpoint: r.sock, SupportedVersions: []string{"1.0.0"}}, nil
}
func (r *reg) NotifyRegistrationStatus(_ context.Context, s *regapi.RegistrationStatus) (*regapi.RegistrationStatusResponse, error) {
	klog.Infof("registered=%v %s", s.PluginRegistered, s.Error)
	return &regapi.RegistrationStatusResponse{}, nil
}

func serve(sock string, f func(*grpc.Server)) {
	os.MkdirAll(filepath.Dir(sock), 0o755)
	os.Remove(sock)
	l, err := net.Listen("unix", sock)
	if err != nil {
		klog.Fatal(err)
	}
	s := grpc.NewServer()
	f(s)
	klog.Fatal(s.Serve(l))
}

func Node() {
	node := flag.String("node", "", "")
	dir := flag.String("dir", "", "")
	shared := flag.String("shared-dir", "", "")
	root := flag.String("kubelet-dir", "", "")
	flag.Parse()
	go serveDriver(&drv{name: netDriverName, node: *node, dir: *shared}, *root)
	serveDriver(&drv{name: driverName, node: *node, dir: *dir}, *root)
}

func serveDriver(d *drv, root string) {
	os.MkdirAll(d.dir, 0o755)
	sock := filepath.Join(root, "plugins", d.name, "csi.sock")
	go serve(sock, func(s *grpc.Server) { csi.RegisterIdentityServer(s, d); csi.RegisterNodeServer(s, d) })
	serve(filepath.Join(root, "plugins_registry", d.name+"-reg.sock"), func(s *grpc.Server) { regapi.RegisterRegistrationServer(s, &reg{name: d.name, sock: sock}) })
}
