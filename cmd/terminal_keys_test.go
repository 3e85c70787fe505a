package cmd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	retryx "github.com/retryx/retryx/exec"
)

// More of what keys do at a real terminal: they press again, they answer a
// prompt, they hold the screen.

// Scenario 44: the user escalates, not retryx: a command that does not listen
// hears each ^C, and pressing on ends it for good. That the third press is the
// one is held by TestSignalInSharedMode: on a busy machine two may look like one.
func TestPressingOnKills(t *testing.T) {
	t.Parallel()
	s := startSession(t, "-c", `retryx --kill-after 1h --outcome o -- flaky hang ready=r count=c trap=INT:-1; echo "after"`)
	s.file("r", "ready")
	s.keys(interruptKey)
	s.file("c.got", "interrupt\n")
	<-time.After(retryx.SameEvent + 50*time.Millisecond) // else it is the first once more
	s.keys(interruptKey)
	s.file("c.got", strings.Repeat("interrupt\n", 2))
	ended := func() bool {
		data, err := os.ReadFile(filepath.Join(s.dir, "o"))
		return err == nil && len(data) > 0
	}
	for range 100 {
		<-time.After(retryx.SameEvent + 50*time.Millisecond)
		if ended() {
			break
		}
		s.keys(interruptKey)
	}
	o := s.outcome("o")
	if field(o, "outcome") != "cancelled" || field(o, "signal") != "SIGKILL" || field(o, "attempt_count") != "1" {
		t.Errorf("outcome = %v, want cancelled, killed in its first attempt", o)
	}
	if got := s.ended(); !got.Signaled() || got.Signal() != syscall.SIGINT {
		t.Errorf("bash ended with %v, want death by INT; the terminal shows:\n%s", got, s.screen)
	}
}

// A command that asks on the terminal while its input is a pipe, as ssh and sudo
// do, gets its answer, in every attempt, and what is typed is not shown.
func TestPasswordPrompt(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("stty"); err != nil {
		t.Skip("no stty on this machine")
	}
	const ask = `exec 3<>/dev/tty; stty -echo <&3; printf "password: " >&3; read p <&3; stty echo <&3; exec 3>&-; read d; echo "got <$p> and <$d>"; test $RETRYX_ATTEMPT = 2`
	s := startSession(t, "-c", `echo data | retryx -n 3 --stdin replay -- sh -c '`+ask+`'; echo "status $?"`)
	for i, word := range []string{"one", "two"} {
		if !eventually(func() bool { return strings.Count(s.screen.String(), "password: ") == i+1 }) {
			t.Fatalf("attempt %d does not ask:\n%s", i+1, s.screen)
		}
		s.keys(word + "\n")
		s.shows("got <" + word + "> and <data>")
	}
	s.shows("status 0")
	if text := s.screen.String(); strings.Contains(strings.ReplaceAll(text, "<one>", ""), "one") {
		t.Errorf("what was typed is shown:\n%s", text)
	}
}

// Scenario 50: our lines are coloured where a person reads them, whatever stdout
// is, and nowhere else.
func TestColours(t *testing.T) {
	t.Parallel()
	const line, colour = "attempt 1 of 2 failed", "\x1b["
	for _, tt := range []struct {
		name, before, after string
		coloured            bool
	}{
		{"stderr is a terminal", "TERM=xterm", "", true},
		{"stdout is a pipe", "TERM=xterm", " | cat", true},
		{"stderr is a file", "TERM=xterm", " 2>err; cat err", false},
		{"NO_COLOR", "TERM=xterm NO_COLOR=1", "", false},
		{"a dumb terminal", "TERM=dumb", "", false},
		{"asked for", "TERM=dumb RETRYX_COLOR=always", " 2>err; cat err", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := startSession(t, "-c", tt.before+" retryx -n 2 -- flaky fail=1 count=c"+tt.after+"; echo 'the end'")
			s.shows("the end")
			text := s.screen.String()
			if !strings.Contains(text, line) {
				t.Fatalf("there is no %q:\n%q", line, text)
			}
			// The countdown's control sequences are no colours, and none is due.
			if got := strings.Contains(text, colour); got != tt.coloured {
				t.Errorf("coloured = %v, want %v:\n%q", got, tt.coloured, text)
			}
		})
	}
}

// The command's stderr is a terminal of the size of the real one, also when that
// changes, and what the command does to it is undone for the next attempt.
func TestWindowOfTheCommand(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("stty"); err != nil {
		t.Skip("no stty on this machine")
	}
	s := startSession(t, "-c", `retryx -n 1 -- bash -c 'test -t 2 && stty size <&2; trap "echo resized to; stty size <&2" WINCH; echo ready; while ! test -e over; do sleep 0.02; done'`)
	s.shows("ready")
	if err := pty.Setsize(s.terminal, &pty.Winsize{Rows: 33, Cols: 101}); err != nil {
		t.Fatal(err)
	}
	s.shows("33 101")
}

// A screen that is held with ^S takes no line of ours. The run goes on without it,
// and a signal ends it.
func TestSignalOnAHeldScreen(t *testing.T) {
	t.Parallel()
	s := startSession(t, "-c", `retryx --delay 1h --max-delay 1h --outcome o -- sh -c 'echo $PPID > pid; while ! test -e go; do sleep 0.01; done; exit 3'; true`)
	pid := s.pid("pid")
	s.keys(holdKey)
	s.write("go")
	// Nothing tells from outside that it is stuck in its line by now; if it is
	// not, this is a signal like any other.
	<-time.After(200 * time.Millisecond)
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	o := s.outcome("o")
	if field(o, "outcome") != "cancelled" || field(o, "attempt_count") != "1" {
		t.Errorf("outcome = %v, want cancelled after one attempt", o)
	}
}

const holdKey = "\x13" // ^S

// A pager gets its keys, also one that a command brings up: it asks the terminal
// that its stderr is.
func TestPagerGetsItsKeys(t *testing.T) {
	t.Parallel()
	for _, pager := range []string{"less", "more"} {
		t.Run(pager, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(pager); err != nil {
				t.Skipf("no %s on this machine", pager)
			}
			s := startSession(t, "-c", `seq 1000 | TERM=xterm retryx -n 1 -q -- `+pager+`; echo "status $?"; stty -a`)
			s.shows("17")
			s.keys("q")
			s.shows("status 0")
			s.shows(" echo ") // as it was before
		})
	}
}

// What transfers shows how far it is, as it does on a terminal.
func TestGitShowsProgress(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git on this machine")
	}
	s := startSession(t, "-c", `git init -q a; cd a; git -c user.name=a -c user.email=a@b.c commit -q --allow-empty -m x; cd ..
		retryx -n 1 -q -- git clone "file://$PWD/a" b; echo "status $?"`)
	s.shows("status 0")
	s.shows("Counting objects: 100% (2/2)")
}
