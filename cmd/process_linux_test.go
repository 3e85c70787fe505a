package cmd_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	retryx "github.com/retryx/retryx/exec"
)

// What only Linux shows or can do: the death of a parent, open descriptors, and
// disks of any size.

// Scenario 37: a retryx that is killed as nothing can be caught takes its command
// along. What the command started has to see to itself.
func TestKilledRetryxTakesTheCommandAlong(t *testing.T) {
	t.Parallel()
	tr := wrap(t, "--", "flaky", "hang", "ready=r", "count=c", "trap=TERM:0")
	tr.await("r", "ready", 1)
	tr.kill()
	tr.gone()
	tr.await("c.got", "terminated", 1)
}

// Scenario 70: the command sees the descriptors that retryx was started with and
// no other: none of a lock, a spool, a replay, the outcome or a terminal.
func TestDescriptorsOfTheCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const list = `for fd in /proc/$$/fd/*; do echo ${fd##*/}; done > `
	scripts(t, dir, map[string]string{
		"bare":    list + "fds.bare",
		"attempt": list + "fds.$RETRYX_ATTEMPT; test $RETRYX_ATTEMPT = 3",
	})
	tr := plant(t, dir, "sh", "-c", `sh ./bare < bare 5< bare; head -c 3000000 /dev/zero |
		retryx -n 3 --stdin replay --stdout commit --capture both --breaker --cancel-file no --run-budget 5 --outcome fd:6 5< bare 6> out -- sh ./attempt`)
	if got := tr.ended(); got != "0" {
		t.Errorf("ended with %s, want 0", got)
	}
	tr.gone()
	tr.outcome("out", "outcome=success", "attempt_count=3")
	want := tr.read("fds.bare")
	if !strings.Contains(want, "5\n") {
		t.Fatalf("the bare command has %q, want 5 among them", want)
	}
	for attempt := range 3 {
		if got := tr.read(fmt.Sprint("fds.", attempt+1)); got != want {
			t.Errorf("attempt %d has descriptors %q, want %q", attempt+1, got, want)
		}
	}
}

// What is kept back goes beyond 1 MiB into a file without a name: nothing of it
// is left behind, however retryx ends.
func TestSpoolHasNoName(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tmp := filepath.Join(dir, "tmp")
	if err := os.Mkdir(tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	tr := plant(t, dir, "env", "TMPDIR="+tmp, "retryx", "--stdout", "commit", "--",
		"sh", "-c", "head -c 3000000 /dev/zero; echo ready > ready; exec sleep 300")
	tr.await("ready", "ready", 1)
	unnamed := func() bool {
		fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", tr.agent.Process.Pid))
		if err != nil {
			t.Fatal(err)
		}
		for _, fd := range fds {
			if to, err := os.Readlink(fd); err == nil && strings.HasPrefix(to, tmp) && strings.HasSuffix(to, "(deleted)") {
				return true
			}
		}
		return false
	}
	if !eventually(unnamed) {
		t.Error("no file without a name is open")
	}
	if list, err := os.ReadDir(tmp); err != nil || len(list) > 0 {
		t.Errorf("the temporary directory holds %v, %v, want nothing", list, err)
	}
	tr.kill()
	tr.gone()
}

// smallDisk mounts a disk of 1 MiB in memory.
func smallDisk(t *testing.T, dir string) {
	t.Helper()
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("retryx-test", dir, "tmpfs", 0, "size=1m,mode=700"); err != nil {
		t.Skip("cannot mount a disk: ", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
}

// A full disk, in each mode of stdout: a clear error, and never half of an output
// that counts as a success.
func TestFullDiskInEveryMode(t *testing.T) {
	t.Parallel()
	const (
		write = "head -c 3000000 /dev/zero"
		room  = "no space left on device; make room where "
	)
	for _, tt := range []struct {
		name, script string
		message      string
		want         []string
	}{
		// The command itself meets the full disk, and says so itself.
		{"auto", "retryx --outcome ../out -- " + write + " > file", "(errno/", []string{"outcome=hard_failure", "class=permanent", "exit_status=1"}},
		{"stream", "retryx --outcome ../out --stdout stream -- " + write + " > file", "(errno/", []string{"outcome=hard_failure", "class=permanent"}},
		// What is kept back goes to a full disk.
		{"commit", "TMPDIR=$PWD retryx --outcome ../out --stdout commit -- " + write + " > ../kept", room + "TMPDIR", []string{"outcome=hard_failure", "rule=output/lost", "exit_status=1"}},
		{"last", "TMPDIR=$PWD retryx --outcome ../out --stdout last -- " + write + " > ../kept", room + "TMPDIR", []string{"outcome=hard_failure", "rule=output/lost", "exit_status=1"}},
		{"hold", "TMPDIR=$PWD retryx --outcome ../out --hold-output -- " + write + " > ../kept", room + "TMPDIR", []string{"outcome=hard_failure", "rule=output/lost", "exit_status=1"}},
		// It is kept, and then does not fit where it belongs.
		{"commit to it", "retryx --outcome ../out --stdout commit -- " + write + " > file", room + "stdout", []string{"outcome=hard_failure", "reason=output_lost", "exit_code=0", "exit_status=1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			smallDisk(t, filepath.Join(dir, "disk"))
			tr := plant(t, dir, "sh", "-c", "cd disk; "+tt.script)
			if got := tr.ended(); got != "1" {
				t.Errorf("ended with %s, want 1", got)
			}
			doc := tr.outcome("out", append(tt.want, "attempt_count=1")...)
			if text := field(doc, "message"); !strings.Contains(text, tt.message) {
				t.Errorf("message = %q, want %q in it", text, tt.message)
			}
		})
	}
}

// A limit of the user's on a file's size is a full disk, and not our end by
// SIGXFSZ.
func TestLimitOfAFilesSize(t *testing.T) {
	t.Parallel()
	tr := plant(t, t.TempDir(), "sh", "-c", `ulimit -f 2000; exec retryx --outcome out --stdout commit -- head -c 3000000 /dev/zero`)
	if got := tr.ended(); got != "1" {
		t.Errorf("ended with %s, want 1", got)
	}
	doc := tr.outcome("out", "outcome=hard_failure", "rule=output/lost", "exit_code=0")
	if text := field(doc, "message"); !strings.Contains(text, "file too large") {
		t.Errorf("message = %q, want it to name the cause", text)
	}
}

// Scenario 71, as a whole program: the Go runtime raises its own soft limit on
// descriptors; the command has the user's.
func TestDescriptorLimitOfTheCommand(t *testing.T) {
	t.Parallel()
	tr := plant(t, t.TempDir(), "sh", "-c", `ulimit -Sn 48; exec retryx -- sh -c "ulimit -Sn > limit"`)
	if got := tr.ended(); got != "0" {
		t.Errorf("ended with %s, want 0", got)
	}
	if got := tr.read("limit"); got != "48\n" {
		t.Errorf("limit of descriptors = %q, want 48", got)
	}
}

// Two dozen descriptors are enough for any number of attempts and hooks.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	scripts(t, dir, map[string]string{"attempt": "echo text; test $RETRYX_ATTEMPT = 20"})
	tr := plant(t, dir, "sh", "-c", `ulimit -n 24; exec retryx --outcome out -n 20 --no-budget --multiplier 1 --stdout commit --before-retry : -- sh ./attempt > text`)
	if got := tr.ended(); got != "0" {
		t.Errorf("ended with %s, want 0", got)
	}
	tr.outcome("out", "outcome=success", "attempt_count=20", "warnings.0=(absent)")
	if got := tr.read("text"); got != "text\n" {
		t.Errorf("stdout = %q, want the last attempt's", got)
	}
}

// Scenario 92: a wait is one sleep in the kernel. Its threads are not scheduled
// meanwhile, but for looking at a cancel file, which shows that it would be seen.
func TestWaitCostsNothing(t *testing.T) {
	t.Parallel()
	const window = 4 * retryx.TokenInterval
	for _, tt := range []struct {
		name, flags string
		polls       bool
		enough      int // windows of that kind; more than one where the start alone would make one
	}{{"asleep", "", false, 1}, {"looking at a cancel file", "--cancel-file none", true, 5}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tr := plant(t, t.TempDir(), "sh", "-c", "exec retryx "+tt.flags+" --delay 1h --max-delay 1h -- false 2>err")
			tr.await("err", "retrying in", 1)
			seen := 0
			for range 30 { // what the start and the collector still do ends, and a busy machine disturbs or delays no window for ever
				before := switches(t, tr.agent.Process.Pid)
				<-time.After(window)
				if polls := switches(t, tr.agent.Process.Pid) > before; polls == tt.polls {
					seen++
				}
				if seen == tt.enough {
					return
				}
			}
			t.Errorf("in %d windows of %s its threads were as they should be, want %d; woken: want %v", seen, window, tt.enough, tt.polls)
		})
	}
}

// switches counts how often the threads of a process have waited for something.
func switches(t *testing.T, pid int) int {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(files) == 0 {
		t.Fatalf("threads of %d: %v, %v", pid, files, err)
	}
	sum := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // a thread has ended
		}
		_, rest, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
		var n int
		if _, err := fmt.Sscan(rest, &n); err != nil {
			t.Fatal(err)
		}
		sum += n
	}
	return sum
}

// An input that breaks off is no shorter input: the command has had a part of it.
func TestInputThatBreaksOff(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	writer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	reader, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	c, dir := measured(t, "-q", "--stdin", "replay", "--outcome", "out", "--", "cat")
	input, err := reader.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	c.Stdin = input
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(writer, "one\n"); err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "one\n" {
		t.Errorf("the command wrote %q, %v, want what had come", line, err)
	}
	if err := writer.(*net.TCPConn).SetLinger(0); err != nil { // so that it ends with a reset
		t.Fatal(err)
	}
	writer.Close()
	_ = c.Wait() // its status is in the outcome
	doc := (&tree{t: t, dir: dir}).outcome("out", "outcome=hard_failure", "reason=input_lost", "rule=input/lost", "attempt_count=1", "exit_code=0", "exit_status=1")
	if text := fmt.Sprint(doc["message"]); !strings.Contains(text, "only a part of its input") || !strings.Contains(text, "--stdin inherit") {
		t.Errorf("message = %q, want what happened and what to do", text)
	}
}
