package volumes

import (
	"context"
	"encoding/json"
	"fmt"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

// expandAll hands every claim that asks for more than it has to its node: the
// kubelet then calls NodeExpandVolume and reports the new capacity itself.
func expandAll(ctx context.Context, client kubernetes.Interface) error {
	claims, err := client.CoreV1().PersistentVolumeClaims("").List(ctx, meta.ListOptions{})
	if err != nil {
		return err
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		if !wantsMore(claim) {
			continue
		}
		if err := expand(ctx, client, claim); err != nil {
			klog.Warningf("expand %s/%s: %v", claim.Namespace, claim.Name, err)
		}
	}
	return nil
}

func wantsMore(claim *core.PersistentVolumeClaim) bool {
	if claim.Status.Phase != core.ClaimBound {
		return false
	}
	want := claim.Spec.Resources.Requests[core.ResourceStorage]
	have := claim.Status.Capacity[core.ResourceStorage]
	if want.Cmp(have) <= 0 {
		return false
	}
	handed := claim.Status.AllocatedResources[core.ResourceStorage]
	_, atNode := claim.Status.AllocatedResourceStatuses[core.ResourceStorage]
	// A claim that was raised again while the node works is handed over again.
	return !atNode || handed.Cmp(want) != 0
}

func expand(ctx context.Context, client kubernetes.Interface, claim *core.PersistentVolumeClaim) error {
	want := claim.Spec.Resources.Requests[core.ResourceStorage]
	volume, err := client.CoreV1().PersistentVolumes().Get(ctx, claim.Spec.VolumeName, meta.GetOptions{})
	if err != nil {
		return err
	}
	if volume.Spec.CSI == nil || volume.Spec.CSI.Driver != DriverName {
		return nil
	}
	if have := volume.Spec.Capacity[core.ResourceStorage]; have.Cmp(want) < 0 {
		patch, err := json.Marshal(map[string]any{"spec": map[string]any{"capacity": quantity(want)}})
		if err != nil {
			return err
		}
		if _, err := client.CoreV1().PersistentVolumes().Patch(ctx, volume.Name, types.StrategicMergePatchType, patch, meta.PatchOptions{}); err != nil {
			return fmt.Errorf("set the capacity of %s: %w", volume.Name, err)
		}
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"allocatedResources":        quantity(want),
		"allocatedResourceStatuses": map[string]any{"storage": core.PersistentVolumeClaimNodeResizePending},
		"conditions": []core.PersistentVolumeClaimCondition{{
			Type: core.PersistentVolumeClaimFileSystemResizePending, Status: core.ConditionTrue,
			LastTransitionTime: meta.Now(), Message: "waiting for the node to grow the file system",
		}},
	}})
	if err != nil {
		return err
	}
	_, err = client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.StrategicMergePatchType, patch, meta.PatchOptions{}, "status")
	return err
}

func quantity(q resource.Quantity) map[string]resource.Quantity {
	return map[string]resource.Quantity{"storage": q}
}
