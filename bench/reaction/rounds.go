package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// long is a wait that no round sees the end of.
const long = "5m"

// failing are the arguments of a run that fails once and then waits. The rule
// makes it the same for every child; the budget is refilled by the refund.
func failing(flags ...string) []string {
	return append(flags, "--delay", long, "--max-delay", long, "--", "false")
}

// inBackoff starts cmd and returns when it has said that it waits.
func inBackoff(cmd *exec.Cmd) (stderr *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = w
	err = cmd.Start()
	w.Close()
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, awaitLine(r, "retrying in")
}

func awaitLine(r io.Reader, text string) error {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if strings.Contains(lines.Text(), text) {
			return nil
		}
	}
	return fmt.Errorf("no line says %q", text)
}

// errSucceeded is the end of a run that is meant to fail.
var errSucceeded = errors.New("it succeeded")

// patience is how long a round takes at most; beyond it something is broken.
const patience = 30 * time.Second

// ended waits for cmd, which must not have succeeded, and returns the time since.
func ended(cmd *exec.Cmd, since time.Time) (time.Duration, error) {
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	took := time.Since(since)
	if !timer.Stop() {
		return took, errors.New("it did not end")
	}
	if err == nil {
		return took, errSucceeded
	}
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		return took, err
	}
	return took, nil
}

func (b *bench) signalInBackoff() (time.Duration, error) { return signalled(retryx(failing()...)) }

func (b *bench) signalWithoutState() (time.Duration, error) {
	return signalled(retryx(failing("--no-budget", "--no-journal")...))
}

func signalled(cmd *exec.Cmd) (time.Duration, error) {
	stderr, err := inBackoff(cmd)
	if err != nil {
		return 0, err
	}
	defer stderr.Close()
	begin := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	return ended(cmd, begin)
}

func (b *bench) signalBare() (time.Duration, error) { return signalledChild(exec.Command("cat")) }

func (b *bench) signalInAttempt() (time.Duration, error) {
	return signalledChild(retryx("--", "cat"))
}

// signalledChild signals cmd when its child has answered.
func signalledChild(cmd *exec.Cmd) (time.Duration, error) {
	in, err := answering(cmd)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	begin := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	return ended(cmd, begin)
}

// answering starts cmd, a cat, and returns when a line has come back.
func answering(cmd *exec.Cmd) (in io.WriteCloser, err error) {
	if in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := io.WriteString(in, "up\n"); err != nil {
		return nil, err
	}
	return in, awaitLine(out, "up")
}

func (b *bench) exitBare() (time.Duration, error) { return closed(exec.Command("cat")) }

func (b *bench) exit() (time.Duration, error) { return closed(retryx("--", "cat")) }

// closed lets the child end by the end of its input.
func closed(cmd *exec.Cmd) (time.Duration, error) {
	in, err := answering(cmd)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	if err := in.Close(); err != nil {
		return 0, err
	}
	err = cmd.Wait()
	return time.Since(begin), err
}

// phase lets some time pass, in every round another: more than the 20 ms after
// which retryx begins to watch its caller, and spread over the interval at which
// it looks for a cancel file.
func (b *bench) phase() { time.Sleep(poll/2 + time.Duration(b.n*7%50)*poll/50) }

func (b *bench) cancelInBackoff() (time.Duration, error) {
	path := b.path()
	cmd := retryx(failing("--cancel-file", path)...)
	stderr, err := inBackoff(cmd)
	if err != nil {
		return 0, err
	}
	defer stderr.Close()
	return b.cancelled(cmd, path)
}

func (b *bench) cancelInAttempt() (time.Duration, error) {
	path := b.path()
	cmd := retryx("--cancel-file", path, "--", "cat")
	in, err := answering(cmd)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	return b.cancelled(cmd, path)
}

func (b *bench) cancelled(cmd *exec.Cmd, path string) (time.Duration, error) {
	b.phase()
	begin := time.Now()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return 0, err
	}
	defer os.Remove(path)
	return ended(cmd, begin)
}

// caller runs argv as a child of this process, which ends when it is killed.
func caller(argv []string) {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	_ = cmd.Run()
}

// callerGone kills the parent of a retryx that waits. The end of the orphan, which
// nobody here can wait for, is the end of its stderr.
func (b *bench) callerGone() (time.Duration, error) {
	run := retryx(failing()...)
	cmd := exec.Command(b.self, append([]string{"caller"}, run.Args...)...)
	stderr, err := inBackoff(cmd)
	if err != nil {
		return 0, err
	}
	defer stderr.Close()
	b.phase()
	begin := time.Now()
	if err := cmd.Process.Kill(); err != nil {
		return 0, err
	}
	if err := stderr.SetReadDeadline(begin.Add(patience)); err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, stderr)
	took := time.Since(begin)
	_ = cmd.Wait()
	return took, err
}

// readerGone closes the pipe that a waiting retryx has as its stdout.
func (b *bench) readerGone() (time.Duration, error) {
	cmd := retryx(failing()...)
	r, w, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	cmd.Stdout = w
	stderr, err := inBackoff(cmd)
	w.Close()
	if err != nil {
		return 0, err
	}
	defer stderr.Close()
	b.phase()
	begin := time.Now()
	if err := r.Close(); err != nil {
		return 0, err
	}
	return ended(cmd, begin)
}

// timeout is what an attempt takes beyond its limit, the start-up of retryx and
// of the child included.
func (b *bench) timeout() (time.Duration, error) {
	const limit = 50 * time.Millisecond
	cmd := retryx("-n", "1", "-t", limit.String(), "--", "sleep", "60")
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	took, err := ended(cmd, begin)
	return took - limit, err
}
