package cmd_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"
)

// At a real terminal: a shell is the session leader, retryx and its child stand
// in the terminal's foreground group, and keys do what they do without retryx.

// session is a shell on a terminal of its own.
type session struct {
	t        *testing.T
	dir      string
	shell    *exec.Cmd
	terminal *os.File
	screen   *screen
}

// screen collects what the terminal shows.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
	end  chan struct{}
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) read(from *os.File) {
	defer close(s.end)
	buf := make([]byte, 4096)
	for {
		n, err := from.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.mu.Unlock()
		if err != nil { // EIO when the last process has let go of the terminal
			return
		}
	}
}

// startSession runs bash with the given arguments.
func startSession(t *testing.T, args ...string) *session {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on this machine")
	}
	s := &session{t: t, dir: t.TempDir(), screen: &screen{end: make(chan struct{})}}
	s.shell = exec.Command(bash, args...)
	s.shell.Dir = s.dir
	s.shell.Env = append(clientEnv(s.dir), "TERM=dumb", "PS1=$ ", "RETRYX_DELAY=1ms", "HISTFILE=")
	started, err := pty.Start(s.shell)
	if err != nil {
		t.Fatal(err)
	}
	s.terminal = pollable(t, started)
	go s.screen.read(s.terminal)
	t.Cleanup(s.close)
	return s
}

// pollable returns the terminal as a file whose Close ends a read that waits:
// else closing would not hang up.
func pollable(t *testing.T, f *os.File) *os.File {
	t.Helper()
	defer f.Close()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	return os.NewFile(uintptr(fd), f.Name())
}

// close hangs up; what still runs on the terminal gets HUP from the kernel.
func (s *session) close() {
	_ = s.shell.Process.Kill()
	_ = s.shell.Wait()
	_ = s.terminal.Close()
	<-s.screen.end
}

func (s *session) keys(text string) {
	s.t.Helper()
	if _, err := s.terminal.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// shows waits until the terminal shows a text.
func (s *session) shows(text string) {
	s.t.Helper()
	if !eventually(func() bool { return strings.Contains(s.screen.String(), text) }) {
		s.t.Fatalf("the terminal never showed %q:\n%s", text, s.screen)
	}
}

// file waits until a file has a text and returns all of it.
func (s *session) file(name, text string) string {
	s.t.Helper()
	var data []byte
	if !eventually(func() bool {
		data, _ = os.ReadFile(filepath.Join(s.dir, name))
		return strings.Contains(string(data), text)
	}) {
		s.t.Fatalf("%s = %q, want %q in it; the terminal shows:\n%s", name, data, text, s.screen)
	}
	return string(data)
}

// write makes a file with nothing in it.
func (s *session) write(name string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.dir, name), nil, 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *session) pid(name string) int {
	s.t.Helper()
	n, err := strconv.Atoi(strings.TrimSpace(s.file(name, "\n")))
	if err != nil {
		s.t.Fatal(err)
	}
	return n
}

// ended waits for the shell and returns how it ended.
func (s *session) ended() syscall.WaitStatus {
	s.t.Helper()
	hung := time.AfterFunc(patience, func() { _ = s.shell.Process.Kill() })
	defer hung.Stop()
	_ = s.shell.Wait()
	status, ok := s.shell.ProcessState.Sys().(syscall.WaitStatus)
	if !ok {
		s.t.Fatal("no wait status")
	}
	return status
}

// eventually asks until the answer is yes, for as long as patience lasts.
func eventually(ask func() bool) bool {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-tick.C {
		if ask() {
			return true
		}
	}
	return false
}

const (
	interruptKey = "\x03"
	suspendKey   = "\x1a"
)

// Scenario 22; https://github.com/npm/run-script/issues/16: one ^C ends the loop,
// as the shell sees that retryx died of INT.
func TestOneInterruptEndsTheLoop(t *testing.T) {
	t.Parallel()
	s := startSession(t, "-c", `for i in 1 2 3; do retryx -- flaky hang ready=r count=c; echo "after $i"; done`)
	s.file("r", "ready")
	s.keys(interruptKey)
	if got := s.ended(); !got.Signaled() || got.Signal() != syscall.SIGINT {
		t.Errorf("bash ended with %v, want death by INT; the terminal shows:\n%s", got, s.screen)
	}
	if got := s.file("c", "run"); got != "run\n" {
		t.Errorf("runs = %q, want one", got)
	}
}

// The same in the wait between two attempts.
func TestInterruptEndsTheWaitAndTheLoop(t *testing.T) {
	t.Parallel()
	s := startSession(t, "-c", `for i in 1 2 3; do retryx --delay 1h --max-delay 2h -- flaky count=c; echo "after $i"; done`)
	s.shows("retrying in")
	s.keys(interruptKey)
	if got := s.ended(); !got.Signaled() || got.Signal() != syscall.SIGINT {
		t.Errorf("bash ended with %v, want death by INT; the terminal shows:\n%s", got, s.screen)
	}
}

// Scenario 42, 43; https://github.com/pnpm/pnpm/issues/7374: the child hears one
// ^C once, is not ended by us while it takes its leave, and its exit status is
// what the shell gets. https://github.com/tirsen/retry-cli/issues/3: no retry.
func TestInterruptIsHeardOnce(t *testing.T) {
	t.Parallel()
	s := startSession(t, "-c", `retryx --kill-after 50ms --outcome o -- sh -c 'echo $$ > pid; exec flaky hang ready=r count=c trap=INT:-1,USR1:6'; echo "status $?"`)
	s.file("r", "ready")
	pid := s.pid("pid")
	s.keys(interruptKey)
	s.file("c.got", "interrupt")
	s.file("pid", "\n")
	if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	s.shows("status 6")
	if got, want := s.file("c.got", "user"), "interrupt\nuser defined signal 1\n"; got != want {
		t.Errorf("signals = %q, want %q", got, want)
	}
	if o := s.outcome("o"); field(o, "outcome") != "cancelled" || field(o, "attempt_count") != "1" {
		t.Errorf("outcome = %v after ^C, want cancelled after one attempt", o)
	}
}

func (s *session) outcome(name string) map[string]any {
	s.t.Helper()
	doc, err := validOutcome(strings.TrimSpace(s.file(name, "\n")))
	if err != nil {
		s.t.Fatal(err)
	}
	return doc
}

// Scenario 41, 45; https://github.com/anomalyco/sst/pull/6497: the child may read
// the terminal and set its modes, in every attempt.
func TestChildUsesTheTerminal(t *testing.T) {
	t.Parallel()
	s := startSession(t, "-c", `retryx -n 3 -- sh -c 'stty -echo; stty sane; echo "ask $RETRYX_ATTEMPT"; read x; echo "heard <$x>"; test $RETRYX_ATTEMPT = 2'; echo "status $?"`)
	s.shows("ask 1")
	s.keys("one\n")
	s.shows("heard <one>")
	s.shows("ask 2")
	s.keys("two\n")
	s.shows("heard <two>")
	s.shows("status 0")
}

// Scenario 46: ^Z stops retryx and the child, fg continues both, and the time in
// between makes no attempt late.
func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ps"); err != nil {
		t.Skip("no ps on this machine")
	}
	s := startSession(t, "--norc", "--noprofile", "-i")
	s.keys("retryx --outcome o -- sh -c 'echo $$ > pid; exec flaky hang ready=r count=c trap=USR1:4'; echo status=$?\n")
	s.file("r", "ready")
	pid := s.pid("pid")
	s.keys(suspendKey)
	if !eventually(func() bool { return strings.HasPrefix(processState(pid), "T") }) {
		t.Fatalf("the child is in state %q after ^Z, want T", processState(pid))
	}
	s.shows("Stopped")
	s.keys("fg\n")
	if !eventually(func() bool { return !strings.HasPrefix(processState(pid), "T") }) {
		t.Fatalf("the child is in state %q after fg", processState(pid))
	}
	if err := syscall.Kill(pid, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	s.file("c", "run")
	if got := s.file("c", strings.Repeat("run\n", 2)); got == "" { // status 4 is a failure like any other: the next attempt
		t.Error("no second attempt after fg")
	}
	s.keys(interruptKey)
	s.file("o", "cancelled")
}

func processState(pid int) string {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err.Error()
	}
	return strings.TrimSpace(string(out))
}

// Scenario 47; https://github.com/uutils/coreutils/issues/12979: a job in the
// background that is stopped by TTIN is still ended by its timeout.
func TestBackgroundReaderIsTimedOut(t *testing.T) {
	t.Parallel()
	s := startSession(t, "--norc", "--noprofile", "-i")
	s.keys("retryx -n 1 -t 300ms --outcome o -- cat &\nwait $!; echo status=$?\n")
	s.shows("status=124")
	if o := s.outcome("o"); field(o, "timed_out") != "true" {
		t.Errorf("outcome = %v, want timed_out", o)
	}
}

// A terminal that is closed: HUP for everybody, no further attempt, the child is
// gone, and the outcome is written.
func TestClosedTerminal(t *testing.T) {
	t.Parallel()
	s := startSession(t, "-c", `retryx --outcome o -- sh -c 'echo $$ > pid; exec flaky hang ready=r count=c'; true`)
	s.file("r", "ready")
	pid := s.pid("pid")
	if err := s.terminal.Close(); err != nil {
		t.Fatal(err)
	}
	o := s.outcome("o")
	if got := field(o, "outcome"); got != "cancelled" && got != "abandoned" {
		t.Errorf("outcome = %s, want cancelled or abandoned", got)
	}
	if !eventually(func() bool { return !alive(pid) }) {
		t.Errorf("the child %d outlived its terminal", pid)
	}
	if got := s.file("c", "run"); got != "run\n" {
		t.Errorf("runs = %q, want one", got)
	}
}
