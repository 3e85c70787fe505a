package proc_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/retryx/retryx/exec/proc"
)

// onTerminal runs a helper as the leader of a session on a terminal of its own
// and returns its output.
func onTerminal(t *testing.T, steps ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), self(), steps...)
	command.Env = helperEnviron()
	terminal, err := pty.Start(command)
	if err != nil {
		t.Skip(err)
	}
	defer terminal.Close()
	read := make(chan struct{})
	var text bytes.Buffer
	go func() {
		defer close(read)
		_, _ = io.Copy(&text, terminal) // ends with EIO
	}()
	await(t, read, "end of the terminal")
	if err := command.Wait(); err != nil {
		t.Fatalf("helper: %v\n%s", err, text.Bytes())
	}
	return strings.ReplaceAll(text.String(), "\r\n", "\n")
}

func TestStand(t *testing.T) { // scenario 49 and the group rule
	if got := onTerminal(t, "stand:"); got != "foreground\n" {
		t.Errorf("Stand() of a terminal's session leader = %q, want foreground", got)
	}
	if got := onTerminal(t, "group:stand:"); got != "background\n" {
		t.Errorf("Stand() of a background group = %q, want background", got)
	}
	if got := onTerminal(t, "close:0", "stand:"); got != "foreground\n" {
		t.Errorf("Stand() without stdin = %q, want foreground: stdin is not asked", got)
	}
}

func TestKilledChildLeavesTerminalUsable(t *testing.T) { // scenario 48
	if _, err := exec.LookPath("stty"); err != nil {
		t.Skip(err)
	}
	if got, want := onTerminal(t, "rawkill:"), "changed true\nrestored true\n"; got != want {
		t.Errorf("modes after a kill = %q, want %q", got, want)
	}
}

func TestRestoreInBackgroundDoesNotStop(t *testing.T) { // scenario 48
	if got, want := onTerminal(t, "group:restore:"), "went on\n"; got != want {
		t.Errorf("Restore in the background = %q, want %q", got, want)
	}
}

// openTerminal returns a terminal as our stderr would be, and its other side.
func openTerminal(t *testing.T) (outer *bufio.Reader, stderr *os.File) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { slave.Close(); master.Close() })
	if err := pty.Setsize(slave, &pty.Winsize{Rows: 33, Cols: 77}); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(master), slave
}

func TestPty(t *testing.T) { // stderr on a terminal stays a terminal
	outer, stderr := openTerminal(t)
	spec := proc.Spec{Argv: []string{"/bin/sh", "-c", `test -t 2 && stty size <&2; printf 'a\nb' >&2; exit 3`}}
	spec.Stdout.Tee = true
	spec.Stderr = proc.Sink{File: stderr, Tee: true, PTY: true}
	got := run(t, spec)
	if got.Code != 3 || string(got.Stdout) != "33 77\n" {
		t.Errorf("code, size = %d, %q, want 3, %q", got.Code, got.Stdout, "33 77\n")
	}
	if string(got.Stderr) != "a\nb" || !got.MidLine || got.LeftOpen || got.WriteErr != nil {
		t.Errorf("tail, MidLine, LeftOpen, WriteErr = %q, %v, %v, %v, want %q, true, false, nil",
			got.Stderr, got.MidLine, got.LeftOpen, got.WriteErr, "a\nb")
	}
	line, err := outer.ReadString('\n')
	if err != nil || line != "a\r\n" { // processed once, by the real terminal
		t.Errorf("terminal shows %q, %v, want %q", line, err, "a\r\n")
	}
}

func TestPtyIsByteIdentical(t *testing.T) { // scenario 52
	file := temporary(t, 0)
	spec := helper("noise:300000")
	spec.Stderr = proc.Sink{File: file, Tee: true, PTY: true}
	got := run(t, spec)
	all, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 300000 || !bytes.Equal(got.Stderr, all[len(all)-proc.TailBytes:]) {
		t.Errorf("passed on %d bytes, tail of %d, want 300000 and the last %d of them",
			len(all), len(got.Stderr), proc.TailBytes)
	}
}

func TestPtyResize(t *testing.T) {
	_, stderr := openTerminal(t)
	in, answer := piped(t, "")
	spec := proc.Spec{Argv: []string{"/bin/sh", "-c", `stty size <&2; read x; stty size <&2`}, Stdin: in}
	spec.Stderr = proc.Sink{File: stderr, Tee: true, PTY: true}
	p, out := startRead(t, spec)
	out.want("33 77")
	if err := pty.Setsize(stderr, &pty.Winsize{Rows: 10, Cols: 20}); err != nil {
		t.Fatal(err)
	}
	p.Resize()
	writeString(t, answer, "\n")
	out.want("10 20")
}

func TestPtyLeftOpen(t *testing.T) { // scenario 31
	in, hold := piped(t, "")
	spec := helper(`spawn:cat:|out:alive\n`, "err:mine")
	spec.Stdin = in
	spec.Stderr = proc.Sink{File: temporary(t, 0), Tee: true, PTY: true}
	spec.WaitDelay = 20 * time.Millisecond
	p, out := startRead(t, spec)
	got := finish(t, p)
	if got.Code != 0 || !got.LeftOpen || string(got.Stderr) != "mine" {
		t.Errorf("code, LeftOpen, tail = %d, %v, %q, want 0, true, %q", got.Code, got.LeftOpen, got.Stderr, "mine")
	}
	hold.Close()
	out.want("alive")
}
