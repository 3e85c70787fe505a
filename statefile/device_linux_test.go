package statefile_test

import "golang.org/x/sys/unix"

// mknod makes a null device.
func mknod(path string) error {
	return unix.Mknod(path, unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3)))
}
