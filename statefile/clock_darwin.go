package statefile

import "golang.org/x/sys/unix"

// bootTime reads CLOCK_MONOTONIC, which on this system counts sleep.
func bootTime() (int64, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, false
	}
	return ts.Nano(), true
}

func bootIdentity() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}
