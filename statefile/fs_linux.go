package statefile

import "golang.org/x/sys/unix"

// remoteKind names the filesystem of an open file if its locks may not exclude
// other machines, or do not exclude at all; "" if they can be trusted.
func remoteKind(fd int) (string, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return "", err
	}
	return remoteName(uint32(st.Type)), nil
}

// remoteName knows the magic numbers; those without a constant in x/sys are from
// the filesystems' own headers.
func remoteName(magic uint32) string {
	switch magic {
	case unix.NFS_SUPER_MAGIC:
		return "nfs"
	case unix.SMB_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC:
		return "smb"
	case unix.FUSE_SUPER_MAGIC:
		return "fuse"
	case unix.V9FS_MAGIC:
		return "9p"
	case unix.AFS_SUPER_MAGIC, unix.AFS_FS_MAGIC:
		return "afs"
	case unix.CODA_SUPER_MAGIC:
		return "coda"
	case unix.CEPH_SUPER_MAGIC:
		return "ceph"
	case unix.NCP_SUPER_MAGIC:
		return "ncp"
	case unix.OCFS2_SUPER_MAGIC:
		return "ocfs2"
	case 0x0bd00bd0:
		return "lustre"
	case 0x47504653:
		return "gpfs"
	case 0x19830326:
		return "beegfs"
	case 0x01161970:
		return "gfs2"
	case 0x786f4256:
		return "vboxsf"
	case 0xaad7aaea:
		return "panfs"
	}
	return ""
}
