package proc

// How a name becomes a program, and what a failure to start means. The rules
// are those of execvp(3), timeout(1) and the shells:
//
//   - A name with a slash is used as it is. Any other is looked for in PATH
//     (its default when unset), where an empty or relative entry counts; the
//     first executable regular file wins.
//   - Nothing found is status 127. Found but not executable is 126, and so is
//     every other reason.
//   - A file the kernel does not know (ENOEXEC) is run by /bin/sh, unless it is
//     binary: a program for another machine makes no sense as a script.
//   - argv reaches the child as given, argv[0] included.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	shell       = "/bin/sh"
	defaultPath = "/bin:/usr/bin"
)

// A StartError says why there is no child.
type StartError struct {
	// Argv0 is the command's name as given.
	Argv0 string
	// Interpreter is the program that a script names after "#!", when it is
	// this that does not exist; else empty.
	Interpreter string
	// Err is the system's error, usually a syscall.Errno.
	Err error
}

// Error names the command and the reason.
func (e *StartError) Error() string {
	if e.Interpreter != "" {
		return fmt.Sprintf("start %q: interpreter %q: %v", e.Argv0, e.Interpreter, e.Err)
	}
	return fmt.Sprintf("start %q: %v", e.Argv0, e.Err)
}

// Unwrap returns the system's error.
func (e *StartError) Unwrap() error { return e.Err }

// Status returns the exit status that shells use for it: 127 when the command
// or its interpreter was not found, else 126.
func (e *StartError) Status() int {
	if errors.Is(e.Err, syscall.ENOENT) || errors.Is(e.Err, syscall.ENOTDIR) {
		return 127
	}
	return 126
}

// Transient reports whether the same start may work a moment later: the system
// was short of processes, memory or descriptors, or the file was being written.
func (e *StartError) Transient() bool {
	for _, errno := range []syscall.Errno{
		syscall.EAGAIN, syscall.ENOMEM, syscall.EMFILE, syscall.ENFILE, syscall.ETXTBSY,
	} {
		if errors.Is(e.Err, errno) {
			return true
		}
	}
	return false
}

// newStartError adds what can be found out about a program that did not start.
func newStartError(argv0, program string, err error) *StartError {
	e := &StartError{Argv0: argv0, Err: err}
	info, statErr := os.Stat(program)
	switch {
	case statErr != nil:
	case errors.Is(err, syscall.ENOENT):
		e.Interpreter = interpreter(program)
	case errors.Is(err, syscall.EACCES) && info.IsDir(): // which is all that the system says of one
		e.Err = syscall.EISDIR
	}
	return e
}

// locate returns the path of the program that argv names.
func locate(argv []string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", &StartError{Err: syscall.ENOENT}
	}
	name := argv[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	path, set := os.LookupEnv("PATH")
	if !set {
		path = defaultPath
	}
	var err error = syscall.ENOENT
	for _, dir := range filepath.SplitList(path) {
		if dir == "" {
			dir = "."
		}
		program := dir + "/" + name
		found := executable(program)
		if found == nil {
			return program, nil
		}
		if errors.Is(found, syscall.EACCES) {
			err = found
		}
	}
	return "", &StartError{Argv0: name, Err: err}
}

// executable returns nil for a regular file that we may execute, EACCES for
// one that we may not, and another error for what is no file at all.
func executable(program string) error {
	info, err := os.Stat(program)
	switch {
	case errors.Is(err, syscall.EACCES):
		return syscall.EACCES
	case err != nil:
		return syscall.ENOENT
	case !info.Mode().IsRegular():
		return syscall.EACCES
	}
	if unix.Faccessat(unix.AT_FDCWD, program, unix.X_OK, unix.AT_EACCESS) != nil {
		return syscall.EACCES
	}
	return nil
}

// launch forks and executes. The pidfd is -1 where there is none.
func launch(program string, spec Spec, p *pipes) (pid, pidfd int, err error) {
	env := spec.Env
	if env == nil {
		env = os.Environ()
	}
	pidfd = -1
	attr := &syscall.ProcAttr{
		Env:   env,
		Files: []uintptr{p.child[0].Fd(), p.child[1].Fd(), p.child[2].Fd()},
		Sys:   systemAttr(spec.Group, &pidfd),
	}
	pid, err = start(program, spec.Argv, attr)
	if errors.Is(err, syscall.ENOEXEC) && isScript(program) {
		argv := append([]string{shell, program}, spec.Argv[1:]...)
		pid, err = start(shell, argv, attr)
	}
	runtime.KeepAlive(p)
	if err != nil {
		return 0, -1, err
	}
	return pid, pidfd, nil
}

// start is os.StartProcess without its handle: that one reaps a child as soon
// as it is a zombie, and leaves no moment to lock signals out.
func start(program string, argv []string, attr *syscall.ProcAttr) (int, error) {
	pid, _, err := syscall.StartProcess(program, argv, attr)
	return pid, err
}

// isScript reports whether a file that the kernel refused looks like text: no
// NUL before the first newline, which is how bash tells.
func isScript(program string) bool {
	head := fileHead(program)
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return bytes.IndexByte(line, 0) < 0
}

// interpreter returns the program of a "#!" line, or "".
func interpreter(program string) string {
	line, _, _ := bytes.Cut(fileHead(program), []byte("\n"))
	rest, ok := bytes.CutPrefix(line, []byte("#!"))
	if !ok {
		return ""
	}
	// A carriage return at the end is part of the name for the kernel, and is
	// the usual reason why it does not exist.
	name, _, _ := strings.Cut(strings.Trim(string(rest), " \t"), " ")
	return name
}

// fileHead returns the first bytes of a file, fewer or none if it is short or
// cannot be read.
func fileHead(program string) []byte {
	file, err := os.Open(program)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, 256)
	n, _ := io.ReadFull(file, head)
	return head[:n]
}
