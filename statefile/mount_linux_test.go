package statefile_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

// mount makes a small disk in memory.
func mount(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("retryx-test", dir, "tmpfs", 0, options+",mode=700"); err != nil {
		t.Skip("cannot mount a disk: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
	return dir
}

func remount(t *testing.T, dir string) {
	t.Helper()
	if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skip("cannot make the disk read-only: ", err)
	}
}
