package statefile

import (
	"encoding/hex"

	"golang.org/x/sys/unix"
)

// bootTime reads CLOCK_MONOTONIC. It may stand still while the machine sleeps;
// a bucket then refills later than it could, never earlier.
func bootTime() (int64, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, false
	}
	return ts.Nano(), true
}

// bootIdentity is the kernel's random number for this boot; the boot's time
// would not do, it moves when the wall clock is set.
func bootIdentity() string {
	id, err := unix.SysctlRaw("kern.boot_id")
	if err != nil {
		return ""
	}
	return hex.EncodeToString(id)
}
