package proc

import "syscall"

// stopped says yes: it cannot be told cheaply, and SIGCONT to a running process
// is ignored by all but debuggers.
func stopped(int) bool { return true }

// living cannot tell zombies apart here and names the group itself.
func living(pgid int) []int { return []int{pgid} }

// maxRSS converts to bytes: FreeBSD counts in KiB.
func maxRSS(usage *syscall.Rusage) int64 { return int64(usage.Maxrss) << 10 } //nolint:unconvert // 32 bits wide on some machines
