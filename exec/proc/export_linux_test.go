package proc

import (
	"time"

	"golang.org/x/sys/unix"
)

// AwaitMember is awaitMember.
func AwaitMember(pgid int, limit time.Duration) { awaitMember(pgid, limit) }

// AwaitStop returns when the child is stopped, and leaves that to be asked again.
func AwaitStop(pid int) {
	_ = ignoreEINTR(func() error {
		return unix.Waitid(unix.P_PID, pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
	})
}
