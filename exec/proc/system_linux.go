package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// inputQueue asks a pipe how many bytes it holds.
	inputQueue = unix.TIOCINQ
	// getModes and setModes are the requests for a terminal's modes.
	getModes = unix.TCGETS
	setModes = unix.TCSETS
	// pollClosed is the event of a socket whose peer sends no more.
	pollClosed = unix.POLLRDHUP
)

// pidfdSignalProcessGroup is PIDFD_SIGNAL_PROCESS_GROUP of linux/pidfd.h.
const pidfdSignalProcessGroup = 1 << 2

// errNoPidfd says that the system cannot signal a group through a pidfd.
var errNoPidfd = errors.New("no group signals by pidfd")

// systemAttr makes the child die with us, and gives a New group its own number
// and a pidfd. The runtime checks after the fork that we are still there.
func systemAttr(group Group, pidfd *int) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if group == New {
		attr.Setpgid = true
		attr.PidFD = pidfd
	}
	return attr
}

// waitable blocks until the child has ended, and leaves it to be reaped.
func waitable(pid int) {
	_ = ignoreEINTR(func() error {
		return unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	})
}

// stopped reports whether our child is stopped, and leaves that to be asked
// again.
func stopped(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err == nil && info.Signo != 0
}

func signalGroupByPidfd(pidfd int, sig syscall.Signal) error {
	if pidfd < 0 {
		return errNoPidfd
	}
	err := unix.PidfdSendSignal(pidfd, sig, nil, pidfdSignalProcessGroup)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return errNoPidfd
	}
	return err
}

func closePidfd(pidfd int) {
	if pidfd >= 0 {
		_ = unix.Close(pidfd)
	}
}

// living returns the members of a group that are no zombies. A system without
// /proc cannot tell: then the answer is the number of the group itself.
func living(pgid int) []int {
	names, err := procNames()
	if err != nil {
		return []int{pgid}
	}
	var list []int
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		state, group, ok := procState(name)
		if ok && group == pgid && state != 'Z' && state != 'X' {
			list = append(list, pid)
		}
	}
	return list
}

func procNames() ([]string, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		return nil, err
	}
	return dir.Readdirnames(-1)
}

// procState reads state and group from /proc/PID/stat. The command's name may
// hold anything, so the fields are counted from its closing parenthesis.
func procState(pid string) (state byte, pgid int, ok bool) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return 0, 0, false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 3 {
		return 0, 0, false
	}
	pgid, err = strconv.Atoi(string(fields[2]))
	return fields[0][0], pgid, err == nil
}

// awaitMember returns when one living member of the group has ended, or after
// limit.
func awaitMember(pgid int, limit time.Duration) {
	members := living(pgid)
	if len(members) == 0 {
		return
	}
	fd, err := unix.PidfdOpen(members[0], 0)
	if err != nil {
		_, _ = unix.Poll(nil, 1) // a kernel before 5.3, or the member is just gone
		return
	}
	defer func() { _ = unix.Close(fd) }()
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	_, _ = unix.Poll(fds, int(limit.Milliseconds())+1)
}
