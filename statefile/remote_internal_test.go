//go:build linux

package statefile

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Property 29: filesystems on which a lock may not exclude are known by their
// numbers; local ones are not among them.
func TestRemoteName(t *testing.T) {
	for magic, want := range map[uint32]string{
		unix.NFS_SUPER_MAGIC: "nfs", unix.CIFS_SUPER_MAGIC: "smb", unix.SMB2_SUPER_MAGIC: "smb", unix.FUSE_SUPER_MAGIC: "fuse",
		unix.V9FS_MAGIC: "9p", unix.CEPH_SUPER_MAGIC: "ceph", 0x0bd00bd0: "lustre",
		unix.EXT4_SUPER_MAGIC: "", unix.XFS_SUPER_MAGIC: "", unix.BTRFS_SUPER_MAGIC: "", unix.TMPFS_MAGIC: "", unix.OVERLAYFS_SUPER_MAGIC: "",
		unix.F2FS_SUPER_MAGIC: "", 0x2fc12fc1: "",
	} {
		if got := remoteName(magic); got != want {
			t.Errorf("remoteName(%#x) = %q, want %q", magic, got, want)
		}
	}
}

// Each boot and each time namespace is a domain of its own; no identity at all is
// the wall clock's.
func TestDomain(t *testing.T) {
	a, b, none := domain("boot-1/time:[1]"), domain("boot-1/time:[2]"), domain("")
	if a == b || a == none || b == none || none != wallDomain {
		t.Errorf("domains = %d, %d, %d, want three different ones", a, b, none)
	}
	c := Clock{domain: wallDomain}
	if s := c.Now(); s.Boot != s.Wall {
		t.Errorf("Now() without an identity = %+v, want the wall clock for both", s)
	}
}
