package volumes

import (
	"testing"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

func claim(phase core.PersistentVolumeClaimPhase, want, have, handed string) *core.PersistentVolumeClaim {
	storage := func(size string) core.ResourceList {
		if size == "" {
			return nil
		}
		return core.ResourceList{core.ResourceStorage: resource.MustParse(size)}
	}
	claim := &core.PersistentVolumeClaim{}
	claim.Spec.Resources.Requests = storage(want)
	claim.Status.Phase = phase
	claim.Status.Capacity = storage(have)
	if handed != "" {
		claim.Status.AllocatedResources = storage(handed)
		claim.Status.AllocatedResourceStatuses = map[core.ResourceName]core.ClaimResourceStatus{
			core.ResourceStorage: core.PersistentVolumeClaimNodeResizePending,
		}
	}
	return claim
}

func TestAClaimIsHandedToItsNodeOnceForEachSize(t *testing.T) {
	cases := []struct {
		name  string
		claim *core.PersistentVolumeClaim
		want  bool
	}{
		{"not bound yet", claim(core.ClaimPending, "2Gi", "1Gi", ""), false},
		{"has what it wants", claim(core.ClaimBound, "1Gi", "1Gi", ""), false},
		{"the same size in other words", claim(core.ClaimBound, "1024Mi", "1Gi", ""), false},
		{"never shrinks", claim(core.ClaimBound, "1Gi", "2Gi", ""), false},
		{"wants more", claim(core.ClaimBound, "2Gi", "1Gi", ""), true},
		{"its node works on it", claim(core.ClaimBound, "2Gi", "1Gi", "2Gi"), false},
		{"raised again meanwhile", claim(core.ClaimBound, "3Gi", "1Gi", "2Gi"), true},
	}
	for _, c := range cases {
		if got := wantsMore(c.claim); got != c.want {
			t.Errorf("%s: wantsMore = %t, want %t", c.name, got, c.want)
		}
	}
}

func TestAHandleNeverLeadsOutOfTheFolder(t *testing.T) {
	if got := imageOf("/volumes", "../../etc/passwd"); got != "/volumes/passwd.img" {
		t.Errorf("imageOf = %s", got)
	}
}
