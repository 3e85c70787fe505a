//go:build darwin || freebsd

package proc

import "golang.org/x/sys/unix"

// AwaitStop returns when the child is stopped.
func AwaitStop(pid int) {
	var status unix.WaitStatus
	_ = ignoreEINTR(func() error {
		_, err := unix.Wait4(pid, &status, unix.WUNTRACED, nil)
		return err
	})
}
