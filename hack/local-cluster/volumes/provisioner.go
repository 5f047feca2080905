package volumes

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	"sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)

const (
	driverName    = "vol.kn.local"
	netDriverName = "net.kn.local" // attachable, not bound to a node
)

type prov struct{ base, name, shared string }

func (p *prov) SupportsBlock(context.Context) bool { return false }

func (p *prov) Provision(_ context.Context, o controller.ProvisionOptions) (*v1.PersistentVolume, controller.ProvisioningState, error) {
	node := o.SelectedNodeName
	if node == "" {
		return nil, controller.ProvisioningFinished, fmt.Errorf("storage class must be WaitForFirstConsumer")
	}
	if _, err := os.Stat(filepath.Join(p.base, node)); err != nil {
		return nil, controller.ProvisioningReschedule, err
	}
	q := o.PVC.Spec.Resources.Requests[v1.ResourceStorage]
	fs := o.StorageClass.Parameters["csi.storage.k8s.io/fstype"]
	if fs == "" {
		fs = "ext4"
	}
	pv := &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: o.PVName},
		Spec: v1.PersistentVolumeSpec{
			PersistentVolumeReclaimPolicy: *o.StorageClass.ReclaimPolicy,
			AccessModes:                   o.PVC.Spec.AccessModes,
			MountOptions:                  o.StorageClass.MountOptions,
			Capacity:                      v1.ResourceList{v1.ResourceStorage: q},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{
				Driver: p.name, VolumeHandle: o.PVName, FSType: fs,
				VolumeAttributes: map[string]string{"size": strconv.FormatInt(q.Value(), 10), "node": node},
			}},
		},
	}
	if p.name == driverName {
		pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
			MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelHostname, Operator: v1.NodeSelectorOpIn, Values: []string{node}}},
		}}}}
	}
	return pv, controller.ProvisioningFinished, nil
}

func (p *prov) Delete(_ context.Context, pv *v1.PersistentVolume) error {
	if pv.Spec.CSI == nil || pv.Spec.CSI.Driver != p.name {
		return &controller.IgnoredError{Reason: "not ours"}
	}
	f := filepath.Join(p.base, pv.Spec.CSI.VolumeAttributes["node"], "vol", pv.Name+".img")
	if p.name == netDriverName {
		f = filepath.Join(p.shared, pv.Name+".img")
	}
	err := os.Remove(f)
	if os.IsNotExist(err) {
		return nil
	}
	return err
}

func resize(ctx context.Context, c kubernetes.Interface) error {
	l, err := c.CoreV1().PersistentVolumeClaims("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range l.Items {
		pvc := &l.Items[i]
		if pvc.Status.Phase != v1.ClaimBound {
			continue
		}
		want := pvc.Spec.Resources.Requests[v1.ResourceStorage]
		have := pvc.Status.Capacity[v1.ResourceStorage]
		if want.Cmp(have) <= 0 || pvc.Status.AllocatedResourceStatuses[v1.ResourceStorage] == v1.PersistentVolumeClaimNodeResizePending {
			continue
		}
		pv, err := c.CoreV1().PersistentVolumes().Get(ctx, pvc.Spec.VolumeName, metav1.GetOptions{})
		if err != nil || pv.Spec.CSI == nil || pv.Spec.CSI.Driver != driverName && pv.Spec.CSI.Driver != netDriverName {
			continue
		}
		if pc := pv.Spec.Capacity[v1.ResourceStorage]; pc.Cmp(want) < 0 {
			b, _ := json.Marshal(map[string]any{"spec": map[string]any{"capacity": map[string]resource.Quantity{"storage": want}}})
			if _, err := c.CoreV1().PersistentVolumes().Patch(ctx, pv.Name, types.StrategicMergePatchType, b, metav1.PatchOptions{}); err != nil {
				return err
			}
		}
		b, _ := json.Marshal(map[string]any{"status": map[string]any{
			"allocatedResources":        map[string]resource.Quantity{"storage": want},
			"allocatedResourceStatuses": map[string]string{"storage": string(v1.PersistentVolumeClaimNodeResizePending)},
			"conditions":                []v1.PersistentVolumeClaimCondition{{Type: v1.PersistentVolumeClaimFileSystemResizePending, Status: v1.ConditionTrue, LastTransitionTime: metav1.Now(), Message: "waiting for the node to grow the file system"}},
		}})
		if _, err := c.CoreV1().PersistentVolumeClaims(pvc.Namespace).Patch(ctx, pvc.Name, types.StrategicMergePatchType, b, metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
		klog.Infof("resize %s/%s to %s: handed to the node", pvc.Namespace, pvc.Name, want.String())
	}
	return nil
}

func Provisioner() {
	kc := flag.String("kubeconfig", "", "")
	base := flag.String("base", "", "")
	shared := flag.String("shared", "", "")
	klog.InitFlags(nil)
	flag.Parse()
	cfg, err := clientcmd.BuildConfigFromFlags("", *kc)
	if err != nil {
		klog.Fatal(err)
	}
	cfg.QPS, cfg.Burst = 50, 100
	c := kubernetes.NewForConfigOrDie(cfg)
	ctx := context.Background()
	go func() {
		for ; ; time.Sleep(time.Second) {
			if err := resize(ctx, c); err != nil {
				klog.Warning(err)
			}
			if err := attach(ctx, c); err != nil {
				klog.Warning(err)
			}
		}
	}()
	for _, n := range []string{driverName, netDriverName} {
		pc := controller.NewProvisionController(ctx, c, n, &prov{base: *base, name: n, shared: *shared}, controller.LeaderElection(false), controller.Threadiness(4))
		go pc.Run(ctx)
	}
	select {}
}

// attach answers VolumeAttachments at once; detaching is the deletion of the object.
func attach(ctx context.Context, c kubernetes.Interface) error {
	l, err := c.StorageV1().VolumeAttachments().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, va := range l.Items {
		if va.Spec.Attacher != netDriverName || va.Status.Attached || va.DeletionTimestamp != nil {
			continue
		}
		if _, err := c.StorageV1().VolumeAttachments().Patch(ctx, va.Name, types.MergePatchType, []byte(`{"status":{"attached":true}}`), metav1.PatchOptions{}, "status"); err != nil {
			return err
		}
	}
	return nil
}
