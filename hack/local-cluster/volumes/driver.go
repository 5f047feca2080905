// Package volumes gives the local cluster size-limited, expandable volumes: a
// provisioner beside the control plane and a CSI node service on every node.
// A volume is a sparse file with an XFS of its own, mounted through a loop
// device on the one node it was made for. It must never offer what it does not
// do: no attaching, no snapshots, no block devices, no second node.
//
// XFS only: growing a mounted ext4 needs CAP_SYS_RESOURCE, which containers
// and small virtual machines often lack; growing XFS does not.
package volumes

import "path/filepath"

// DriverName is the name of the CSI driver, as in CSIDriver and StorageClass.
const DriverName = "vol.local.katazuke.dev"

const (
	fileSystem = "xfs"
	// Smaller than this, mkfs.xfs refuses.
	bytesMin = 300 << 20
	// The volume attributes by which the provisioner tells the node service
	// (and itself, when it deletes) what was promised.
	attributeBytes = "bytes"
	attributeNode  = "node"
)

// imageOf is the file that holds the volume with this handle.
func imageOf(directory, handle string) string {
	return filepath.Join(directory, filepath.Base(handle)+".img")
}
