package cmd_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// Readers who have stopped: of our stderr, and of a stdout that was kept back.
// Scenario 62 as a whole program. Whatever is stuck, a signal ends retryx, and
// the outcome goes where it was sent.

// fullPipe returns a pipe that takes nothing more.
func fullPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	fd := int(w.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for err = nil; !errors.Is(err, unix.EAGAIN); {
		if _, err = unix.Write(fd, make([]byte, 4096)); err != nil && !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EINTR) {
			t.Fatalf("fill pipe: %v", err)
		}
	}
	if err := unix.SetNonblock(fd, false); err != nil { // as it comes from a shell
		t.Fatal(err)
	}
	return r, w
}

// wrapOn is wrap with streams of one's own; nil is /dev/null.
func wrapOn(t *testing.T, dir string, stdout, stderr *os.File, args ...string) *tree {
	t.Helper()
	notIgnored()
	tr := &tree{t: t, dir: dir, agent: exec.Command("retryx", args...)}
	tr.agent.Dir, tr.agent.Env = dir, surroundings(dir)
	tr.agent.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if stdout != nil {
		tr.agent.Stdout = stdout
	}
	if stderr != nil {
		tr.agent.Stderr = stderr
	}
	if err := tr.agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = tr.agent.Process.Kill()
		_ = tr.agent.Wait()
	})
	return tr
}

func TestStuckStderr(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		flags  string
		script string
		file   string // what to wait for before the signal
		signal syscall.Signal
		ended  string
		want   []string
	}{
		{
			"a signal in an attempt", "", `echo run >> runs; exec sleep 300`, "runs", syscall.SIGTERM, "TERM",
			[]string{"outcome=cancelled", "attempt_count=1", "signal=SIGTERM"},
		},
		{
			"a signal while the command is stuck in its own words", "", `echo run >> runs; exec head -c 1000000 /dev/zero >&2`, "runs", syscall.SIGINT, "INT",
			[]string{"outcome=cancelled", "attempt_count=1", "signal=SIGINT"},
		},
		{
			// Its line cannot be written. Nothing else tells from outside that it
			// waits, so the signal may come earlier, which is as well.
			"a signal in a wait", "--delay 1h --max-delay 1h", `echo run >> runs; exit 3`, "runs", syscall.SIGHUP, "",
			[]string{"outcome=cancelled", "attempt_count=1", "reason=signal"},
		},
		{
			"nobody's signal", "-n 3", `echo run >> runs; exit 3`, "", 0, "3",
			[]string{"outcome=retryable_failure", "attempt_count=3", "exit_status=3"},
		},
		{
			"what is held back", "-n 1 --hold-output", `echo text; echo noise >&2; echo run >> runs; exit 3`, "runs", syscall.SIGTERM, "",
			[]string{"outcome=cancelled", "attempt_count=1", "reason=signal"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, w := fullPipe(t)
			args := append(strings.Fields(tt.flags), "--outcome", "out", "--", "sh", "-c", tt.script)
			tr := wrapOn(t, t.TempDir(), nil, w, args...)
			if tt.file != "" {
				tr.await(tt.file, "run", 1)
				tr.signal(tt.signal)
			}
			if got := tr.ended(); tt.ended != "" && got != tt.ended {
				t.Errorf("ended with %s, want %s", got, tt.ended)
			}
			tr.outcome("out", tt.want...)
		})
	}
}

// What nobody took while stderr was stuck comes out in order when somebody reads
// again.
func TestReaderOfStderrComesBack(t *testing.T) {
	t.Parallel()
	r, w := fullPipe(t)
	tr := wrapOn(t, t.TempDir(), nil, w, "-n", "4", "--outcome", "out", "--", "sh", "-c", `echo run >> runs; while test $(wc -l < runs) -gt 2 && ! test -e go; do sleep 0.01; done; exit 3`)
	w.Close()
	tr.await("runs", "run", 3) // so two lines of ours are on their way
	reader := &screen{end: make(chan struct{})}
	go reader.read(r)
	if !eventually(func() bool { return strings.Contains(reader.String(), "attempt 2 of 4 failed") }) {
		t.Fatalf("the line of attempt 2 is missing:\n%s", strings.Trim(reader.String(), "\x00"))
	}
	tr.write("go", "") // what comes now is waited for again
	if got := tr.ended(); got != "3" {
		t.Errorf("ended with %s, want 3", got)
	}
	<-reader.end
	text := strings.Trim(reader.String(), "\x00")
	at := -1
	for i := range 3 {
		next := strings.Index(text, fmt.Sprintf("retryx: attempt %d of 4 failed", i+1))
		if next <= at {
			t.Fatalf("the line of attempt %d is missing or out of order:\n%s", i+1, text)
		}
		at = next
	}
	if !strings.Contains(text, "retryx: gave up after 4 attempts") {
		t.Errorf("the last line is missing:\n%s", text)
	}
}

// A pager that is left open has the output that was kept back; a signal ends the
// passing on, and the run with it.
func TestSignalWhileOutputIsPassedOn(t *testing.T) {
	t.Parallel()
	for _, flags := range []string{"--stdout commit", "--stdout last", "-n 1 --hold-output --rule permanent:exit=0"} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			tr := wrapOn(t, t.TempDir(), w, nil, append(strings.Fields(flags), "--outcome", "out", "--", "head", "-c", "1000000", "/dev/zero")...)
			w.Close()
			if _, err := io.ReadFull(r, make([]byte, 1)); err != nil { // so it has begun, and there is more than a pipe holds
				t.Fatal(err)
			}
			tr.signal(syscall.SIGTERM)
			if got := tr.ended(); got != "TERM" {
				t.Errorf("ended with %s, want TERM", got)
			}
			doc := tr.outcome("out", "outcome=cancelled", "reason=signal", "exit_code=0", "attempt_count=1")
			if text := fmt.Sprint(doc["warnings"]); !strings.Contains(text, "output_lost") {
				t.Errorf("warnings = %s, want output_lost in them", text)
			}
		})
	}
}
