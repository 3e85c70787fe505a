package statefile

import (
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// bootTime reads the clock that counts suspended time and cannot be set.
func bootTime() (int64, bool) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0, false
	}
	return ts.Nano(), true
}

// bootIdentity names this boot and, because a time namespace shifts the boot
// clock, the namespace. Without both it is empty.
func bootIdentity() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	namespace, err := os.Readlink("/proc/self/ns/time")
	if err != nil {
		namespace = "none" // a kernel without time namespaces
	}
	return strings.TrimSpace(string(id)) + "/" + namespace
}
