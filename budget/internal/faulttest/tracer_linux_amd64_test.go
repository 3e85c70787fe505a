package faulttest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The tracer obeys these rules:
//
//   - It follows the threads of one process and not that process's children, who
//     must not feel that anything is wrong.
//   - A call that is made to fail never happens. A process that is killed at a call
//     has not done that call, but everything before it.
//   - Whatever is asked of ptrace is asked by the one thread that started the
//     process.

// call is a system call that a process is about to make.
type call struct {
	name string // as in the manual, "unlock" for the flock that gives back, "" for a call about no file
	path string // the file that it is about
	made bool   // it opens a file without a name, which is made complete before it gets one
	kept bool   // it opens a file that a child would inherit
	new  bool   // it makes a file that has a name: opens it with O_CREAT, or gives it its name
	tid  int
}

func (c call) String() string { return c.name + " " + c.path }

// verdict is what becomes of a call: the zero value lets it happen.
type verdict struct {
	fail syscall.Errno
	kill bool
}

// shape is where a call keeps what it is about.
type shape struct {
	name string
	path int // which argument is a path, -1: the first is a descriptor
	dir  int // which argument the path is relative to
}

func shapes() map[uint64]shape {
	return map[uint64]shape{
		unix.SYS_OPENAT:     {"openat", 1, 0},
		unix.SYS_MKDIRAT:    {"mkdirat", 1, 0},
		unix.SYS_NEWFSTATAT: {"fstatat", 1, 0},
		unix.SYS_UNLINKAT:   {"unlinkat", 1, 0},
		unix.SYS_LINKAT:     {"linkat", 3, 2},
		unix.SYS_FSTAT:      {"fstat", -1, 0},
		unix.SYS_FSTATFS:    {"fstatfs", -1, 0},
		unix.SYS_FLOCK:      {"flock", -1, 0},
		unix.SYS_PREAD64:    {"pread", -1, 0},
		unix.SYS_PWRITE64:   {"pwrite", -1, 0},
		unix.SYS_READ:       {"read", -1, 0},
		unix.SYS_WRITE:      {"write", -1, 0},
		unix.SYS_FTRUNCATE:  {"ftruncate", -1, 0},
		unix.SYS_FCHMOD:     {"fchmod", -1, 0},
		unix.SYS_FCHOWN:     {"fchown", -1, 0},
		unix.SYS_GETDENTS64: {"getdents", -1, 0},
		unix.SYS_CLOSE:      {"close", -1, 0},
	}
}

// tracee is a process under the tracer.
type tracee struct {
	mu    sync.Mutex
	judge func(call) verdict
	pid   int
	known map[uint64]shape
	fated map[int]syscall.Errno // threads within a call, and how it is to fail
	ended chan syscall.WaitStatus
}

// trace starts a process; its streams must be files. judge decides about each of
// its calls, on a goroutine of the tracer's own.
func trace(t *testing.T, cmd *exec.Cmd, judge func(call) verdict) *tracee {
	t.Helper()
	p := &tracee{judge: judge, known: shapes(), fated: map[int]syscall.Errno{}, ended: make(chan syscall.WaitStatus, 1)}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread goes with its tracee
		err := p.start(cmd)
		started <- err
		if err == nil {
			p.ended <- p.follow()
			_ = cmd.Process.Release()
		}
	}()
	if err := <-started; err != nil {
		t.Skip("cannot trace processes here: ", err)
	}
	t.Cleanup(func() {
		select {
		case <-p.ended:
		default:
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
			<-p.ended
		}
	})
	return p
}

// let changes what decides about the calls from now on.
func (p *tracee) let(judge func(call) verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.judge = judge
}

// wait returns how the process ended.
func (p *tracee) wait() syscall.WaitStatus {
	status := <-p.ended
	p.ended <- status
	return status
}

func (p *tracee) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	p.pid = cmd.Process.Pid
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(p.pid, &status, syscall.WALL, nil); err != nil {
		return err
	}
	if !status.Stopped() {
		return fmt.Errorf("it began with status %#x, want a stop", status)
	}
	const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_EXITKILL
	if err := unix.PtraceSetOptions(p.pid, options); err != nil {
		return err
	}
	return unix.PtraceSyscall(p.pid, 0)
}

// follow serves the process until it has ended. The process leads a group, so that
// nobody else's children are waited for.
func (p *tracee) follow() syscall.WaitStatus {
	seen := map[int]bool{p.pid: true}
	for {
		var status syscall.WaitStatus
		tid, err := syscall.Wait4(-p.pid, &status, syscall.WALL, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			panic(fmt.Sprint("wait for a traced process: ", err))
		case !status.Stopped():
			if tid == p.pid {
				return status
			}
			delete(seen, tid) // the number may come again
			delete(p.fated, tid)
			continue
		}
		signal := 0
		switch sig := status.StopSignal(); {
		case sig == syscall.SIGTRAP|0x80:
			p.stop(tid)
		case sig == syscall.SIGTRAP: // a thread was made
		case sig == syscall.SIGSTOP && !seen[tid]: // and this is its beginning
		default:
			signal = int(sig)
		}
		seen[tid] = true
		_ = unix.PtraceSyscall(tid, signal) // it may have been killed meanwhile
	}
}

// stop is called at the beginning and at the end of each call.
func (p *tracee) stop(tid int) {
	var regs unix.PtraceRegs
	if unix.PtraceGetRegs(tid, &regs) != nil {
		return
	}
	fate, inside := p.fated[tid]
	if inside {
		delete(p.fated, tid)
		if fate != 0 {
			regs.Rax = uint64(-int64(fate))
			_ = unix.PtraceSetRegs(tid, &regs)
		}
		return
	}
	p.mu.Lock()
	v := p.judge(p.describe(tid, &regs))
	p.mu.Unlock()
	p.fated[tid] = v.fail
	switch {
	case v.kill:
		_ = syscall.Kill(p.pid, syscall.SIGKILL)
	case v.fail != 0:
		regs.Orig_rax = ^uint64(0) // no such call, so that nothing happens
		_ = unix.PtraceSetRegs(tid, &regs)
	}
}

func (p *tracee) describe(tid int, regs *unix.PtraceRegs) call {
	shape, known := p.known[regs.Orig_rax]
	if !known {
		return call{tid: tid}
	}
	c := call{name: shape.name, tid: tid}
	args := []uint64{regs.Rdi, regs.Rsi, regs.Rdx, regs.R10}
	if shape.path < 0 {
		c.path = descriptor(tid, args[0])
		if shape.name == "flock" && args[1]&unix.LOCK_UN != 0 {
			c.name = "unlock"
		}
		return c
	}
	c.path = text(tid, args[shape.path])
	opens := shape.name == "openat"
	c.made = opens && args[2]&unix.O_TMPFILE == unix.O_TMPFILE
	c.kept = opens && args[2]&unix.O_CLOEXEC == 0
	c.new = opens && args[2]&unix.O_CREAT != 0 || shape.name == "linkat"
	if !filepath.IsAbs(c.path) {
		c.path = filepath.Join(descriptor(tid, args[shape.dir]), c.path)
	}
	return c
}

// descriptor returns what a descriptor of a thread is open on.
func descriptor(tid int, fd uint64) string {
	link := fmt.Sprintf("/proc/%d/fd/%d", tid, int32(fd))
	if int32(fd) == unix.AT_FDCWD {
		link = fmt.Sprintf("/proc/%d/cwd", tid)
	}
	target, err := os.Readlink(link)
	if err != nil {
		return ""
	}
	return target
}

// text reads a string of a thread, a word at a time.
func text(tid int, at uint64) string {
	var b strings.Builder
	for word := make([]byte, 8); b.Len() < unix.PathMax; at += 8 {
		if _, err := unix.PtracePeekData(tid, uintptr(at), word); err != nil {
			break
		}
		before, _, ended := strings.Cut(string(word), "\x00")
		b.WriteString(before)
		if ended {
			break
		}
	}
	return b.String()
}
