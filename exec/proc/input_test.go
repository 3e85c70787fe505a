package proc_test

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/retryx/retryx/exec/proc"
)

// attempt runs one attempt of the steps on the input and returns its stdout.
func attempt(t *testing.T, in *proc.Input, steps ...string) string {
	t.Helper()
	stdin, err := in.Begin()
	if err != nil {
		t.Fatalf("Begin() = %v, want nil", err)
	}
	spec := helper(steps...)
	spec.Stdin = stdin
	spec.Stdout.Spool = new(proc.Spool)
	got := run(t, spec)
	if err := in.End(); err != nil {
		t.Fatalf("End() = %v, want nil", err)
	}
	if got.Code != 0 {
		t.Fatalf("code = %d, want 0", got.Code)
	}
	return spooled(t, spec.Stdout.Spool)
}

func spooled(t *testing.T, s *proc.Spool) string {
	t.Helper()
	var text strings.Builder
	if _, err := s.WriteTo(&text); err != nil {
		t.Fatalf("WriteTo() = %v, want nil", err)
	}
	return text.String()
}

// piped returns a pipe that holds the text; its writer is closed unless held.
func piped(t *testing.T, text string) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	r.Fd() // blocking, as an inherited stdin is
	writeString(t, w, text)
	return r, w
}

func TestFileIsRewoundToWhereItStood(t *testing.T) { // scenarios 64 and 65
	for _, mode := range []proc.InputMode{proc.InputAuto, proc.InputReplay} {
		file := temporary(t, 0)
		writeString(t, file, "first\nsecond\nthird\n")
		if _, err := file.Seek(6, 0); err != nil {
			t.Fatal(err)
		}
		in := proc.NewInput(file, mode, 10)
		for n := 1; n <= 3; n++ {
			if got, want := attempt(t, in, "cat:"), "second\nthird\n"; got != want {
				t.Errorf("mode %v, attempt %d read %q, want %q", mode, n, got, want)
			}
			if in.UsedUp() {
				t.Errorf("mode %v: UsedUp() = true, want false", mode)
			}
		}
	}
}

func TestStdinNobodyReadsIsLeftAlone(t *testing.T) { // scenario 64
	for _, mode := range []proc.InputMode{proc.InputAuto, proc.InputInherit} {
		file := temporary(t, 0)
		writeString(t, file, "one\ntwo\n")
		if _, err := file.Seek(4, 0); err != nil {
			t.Fatal(err)
		}
		attempt(t, proc.NewInput(file, mode, 0), "exit:0")
		if at, err := file.Seek(0, 1); err != nil || at != 4 {
			t.Errorf("offset after a child that does not read = %d, %v, want 4", at, err)
		}
	}
}

func TestInheritedFileIsNotRewound(t *testing.T) {
	file := temporary(t, 0)
	writeString(t, file, "one\n")
	if _, err := file.Seek(0, 0); err != nil {
		t.Fatal(err)
	}
	in := proc.NewInput(file, proc.InputInherit, 0)
	if got := attempt(t, in, "cat:"); got != "one\n" {
		t.Errorf("attempt 1 read %q, want %q", got, "one\n")
	}
	if got := attempt(t, in, "cat:"); got != "" {
		t.Errorf("attempt 2 read %q, want %q", got, "")
	}
}

func TestNullInput(t *testing.T) { // scenario 67
	r, _ := piped(t, "text\n")
	in := proc.NewInput(r, proc.InputNull, 0)
	if got := attempt(t, in, "cat:"); got != "" || in.UsedUp() {
		t.Errorf("read, UsedUp = %q, %v, want %q, false", got, in.UsedUp(), "")
	}
}

func TestUsedUp(t *testing.T) { // scenario 65
	for _, test := range []struct {
		name   string
		text   string
		closed bool // before the attempt
		during func(t *testing.T, w *os.File)
		steps  []string
		want   bool
	}{
		{"read to the end", "hi\n", true, nil, []string{"cat:"}, true},
		{"read in part", "one\ntwo\n", true, nil, []string{"readline:"}, true},
		{"untouched", "hi\n", true, nil, nil, false},
		{"empty", "", true, nil, []string{"cat:"}, false},
		{"idle, writer there", "", false, nil, nil, false},
		{"read, writer there", "one\n", false, nil, []string{"readline:"}, false},
		{"filled and ended during it, untouched", "", false, func(t *testing.T, w *os.File) {
			t.Helper()
			writeString(t, w, "text\n")
			w.Close()
		}, nil, false},
		{"filled, ended and read during it", "", false, func(t *testing.T, w *os.File) {
			t.Helper()
			writeString(t, w, "text\n")
			w.Close()
		}, []string{"cat:"}, true},
		{"ended during it", "", false, func(_ *testing.T, w *os.File) { w.Close() }, []string{"cat:"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, w := piped(t, test.text)
			if test.closed {
				w.Close()
			}
			in := proc.NewInput(r, proc.InputAuto, 0)
			stdin, err := in.Begin()
			if err != nil {
				t.Fatal(err)
			}
			if test.during != nil {
				test.during(t, w)
			}
			spec := helper(test.steps...)
			spec.Stdin = stdin
			run(t, spec)
			if err := in.End(); err != nil {
				t.Fatal(err)
			}
			if got := in.UsedUp(); got != test.want {
				t.Errorf("UsedUp() = %v, want %v", got, test.want)
			}
		})
	}
}

func TestUsedUpSocket(t *testing.T) { // scenario 65
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "ours"), os.NewFile(uintptr(pair[1]), "theirs")
	t.Cleanup(func() { ours.Close(); theirs.Close() })
	unix.CloseOnExec(pair[0])
	unix.CloseOnExec(pair[1])
	writeString(t, theirs, "hi\n")
	in := proc.NewInput(ours, proc.InputAuto, 0)
	attempt(t, in, "readline:")
	if in.UsedUp() {
		t.Error("UsedUp() with a peer = true, want false")
	}
	writeString(t, theirs, "hi\n")
	theirs.Close()
	in = proc.NewInput(ours, proc.InputAuto, 0)
	attempt(t, in, "cat:")
	if !in.UsedUp() {
		t.Error("UsedUp() without a peer = false, want true")
	}
}

func TestDevicesAreNeverUsedUp(t *testing.T) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, file := range []*os.File{null, nil} {
		in := proc.NewInput(file, proc.InputAuto, 0)
		attempt(t, in, "cat:")
		if in.UsedUp() {
			t.Errorf("UsedUp() of %v = true, want false", file)
		}
	}
}

func TestReplay(t *testing.T) { // scenarios 65 and 66
	text := strings.Repeat("all of it, every time\n", 100_000) // more than the memory of a spool
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = w.WriteString(text)
		w.Close()
	}()
	in := proc.NewInput(r, proc.InputReplay, 1<<30)
	for n, steps := range [][]string{
		{"exit:0"},       // reads nothing
		{"readn:100000"}, // reads some
		{"cat:"},
		{"readline:"},
		{"cat:"},
	} {
		got := attempt(t, in, steps...)
		if in.UsedUp() || in.Err() != nil {
			t.Fatalf("attempt %d: UsedUp, Err = %v, %v, want false, nil", n+1, in.UsedUp(), in.Err())
		}
		if steps[0] == "cat:" && got != text {
			t.Errorf("attempt %d read %d bytes, want all %d", n+1, len(got), len(text))
		}
	}
}

func TestReplayStreams(t *testing.T) { // scenario 66
	r, w := piped(t, "")
	in := proc.NewInput(r, proc.InputReplay, 1<<20)
	for n := range 2 {
		stdin, err := in.Begin()
		if err != nil {
			t.Fatal(err)
		}
		spec := helper("readline:", `out:one\n`, "readline:", `out:two\n`)
		spec.Stdin = stdin
		p, out := startRead(t, spec)
		if n == 0 {
			writeString(t, w, "1\n")
		}
		out.want("one")
		if n == 0 {
			writeString(t, w, "2\n") // only once the first line was used: it streams
		}
		out.want("two")
		finish(t, p) // with the writer still there: the end of stdin is not awaited
		if err := in.End(); err != nil {
			t.Fatalf("End() = %v, want nil", err)
		}
	}
}

func TestReplayLimit(t *testing.T) { // scenario 66
	text := strings.Repeat("x", 100_000)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = w.WriteString(text)
		w.Close()
	}()
	in := proc.NewInput(r, proc.InputReplay, 50_000)
	if got := attempt(t, in, "cat:"); got != text {
		t.Errorf("attempt 1 read %d bytes, want all %d", len(got), len(text))
	}
	if !in.UsedUp() || !errors.Is(in.Err(), proc.ErrInputTooLarge) {
		t.Errorf("UsedUp, Err = %v, %v, want true, ErrInputTooLarge", in.UsedUp(), in.Err())
	}
	if _, err := in.Begin(); !errors.Is(err, proc.ErrInputTooLarge) {
		t.Errorf("Begin() = %v, want ErrInputTooLarge", err)
	}
}

func TestReplayWithoutSpace(t *testing.T) { // scenario 66
	t.Setenv("TMPDIR", t.TempDir()+"/gone")
	text := strings.Repeat("x", 3<<20)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() {
		_, _ = w.WriteString(text)
		w.Close()
	}()
	in := proc.NewInput(r, proc.InputReplay, 1<<30)
	spec := helper("cat:")
	if spec.Stdin, err = in.Begin(); err != nil {
		t.Fatal(err)
	}
	got := make(chan int, 1)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	go func() {
		var buf bytes.Buffer
		_, _ = buf.ReadFrom(read)
		got <- buf.Len()
	}()
	spec.Stdout.File = write
	p := start(t, spec)
	write.Close()
	finish(t, p)
	if err := in.End(); err != nil {
		t.Fatal(err)
	}
	if n := <-got; n != len(text) || !in.UsedUp() || !errors.Is(in.Err(), os.ErrNotExist) {
		t.Errorf("bytes, UsedUp, Err = %d, %v, %v, want %d, true, not exist", n, in.UsedUp(), in.Err(), len(text))
	}
}
