//go:build darwin || freebsd

package statefile

import (
	"strings"

	"golang.org/x/sys/unix"
)

// remoteKind names the filesystem of an open file if its locks may not exclude
// other machines, or do not exclude at all; "" if they can be trusted.
func remoteKind(fd int) (string, error) {
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		return "", err
	}
	name := unix.ByteSliceToString(st.Fstypename[:])
	if uint64(st.Flags)&unix.MNT_LOCAL == 0 || foreignName(name) {
		return name, nil
	}
	return "", nil
}

// foreignName finds FUSE and shared folders of virtual machines, which count as
// local.
func foreignName(name string) bool {
	return strings.Contains(name, "fuse") || name == "virtiofs" || name == "p9fs" || name == "9p" || name == "webdav"
}
