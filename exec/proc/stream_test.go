package proc_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retryx/retryx/exec/proc"
)

func TestTeeIsByteIdentical(t *testing.T) { // scenario 52
	const size = 10 << 20
	file := temporary(t, 0)
	spec := helper("noise:10485760")
	spec.Stderr = proc.Sink{File: file, Tee: true}
	got := run(t, spec)
	all, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != size {
		t.Fatalf("passed on %d bytes, want %d", len(all), size)
	}
	if !bytes.Equal(got.Stderr, all[size-proc.TailBytes:]) || !got.StderrTruncated {
		t.Errorf("tail of %d bytes (truncated %v) is not the last %d bytes passed on",
			len(got.Stderr), got.StderrTruncated, proc.TailBytes)
	}
	if got.WriteErr != nil || got.LeftOpen {
		t.Errorf("WriteErr, LeftOpen = %v, %v, want nil, false", got.WriteErr, got.LeftOpen)
	}
}

func TestChildGetsOurVeryStdout(t *testing.T) { // scenario 51
	file := temporary(t, 0)
	if _, err := file.WriteString("before\n"); err != nil {
		t.Fatal(err)
	}
	spec := helper(`out:child\n`)
	spec.Stdout = proc.Sink{File: file}
	run(t, spec)
	if _, err := file.WriteString("after\n"); err != nil { // the offset is shared
		t.Fatal(err)
	}
	got, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	if want := "before\nchild\nafter\n"; string(got) != want {
		t.Errorf("stdout = %q, want %q", got, want)
	}
}

func TestStdoutIsUntouched(t *testing.T) { // scenario 51
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	const size = 64 << 20
	spec := proc.Spec{Argv: []string{"/bin/sh", "-c", "head -c 67108864 /dev/zero"}}
	spec.Stdout = proc.Sink{File: w}
	p := start(t, spec)
	w.Close()
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	if err != nil || n != size {
		t.Fatalf("read %d bytes, %v, want %d, nil", n, err, size)
	}
	want := sha256.Sum256(make([]byte, size))
	if !bytes.Equal(sum.Sum(nil), want[:]) {
		t.Error("stdout differs from what the child wrote")
	}
	if got := finish(t, p); len(got.Stdout) != 0 {
		t.Errorf("kept %d bytes of inherited stdout, want 0", len(got.Stdout))
	}
}

func TestPromptAppearsAtOnce(t *testing.T) { // scenario 54
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	in, answer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	defer answer.Close()
	spec := helper("err:password: ", "readline:", "exit:5")
	spec.Stdin = in
	spec.Stderr = proc.Sink{File: w, Tee: true}
	p := start(t, spec)
	prompt := make([]byte, len("password: "))
	if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(r, prompt); err != nil {
		t.Fatalf("read prompt: %v", err)
	}
	if _, err := answer.WriteString("x\n"); err != nil {
		t.Fatal(err)
	}
	got := finish(t, p)
	if got.Code != 5 || !got.MidLine {
		t.Errorf("code, MidLine = %d, %v, want 5, true", got.Code, got.MidLine)
	}
}

func TestMidLine(t *testing.T) { // scenario 63
	for text, want := range map[string]bool{"": false, `a\n`: false, "a": true, `a\nb`: true} {
		spec := helper("err:" + text)
		spec.Stderr.Tee = true
		if got := run(t, spec); got.MidLine != want {
			t.Errorf("MidLine after %q = %v, want %v", text, got.MidLine, want)
		}
	}
}

func TestReaderOfStderrGoesAway(t *testing.T) { // scenario 59
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	r.Close()
	spec := helper("noise:300000", "err:end", "exit:3")
	spec.Stderr = proc.Sink{File: w, Tee: true}
	got := run(t, spec)
	if got.Code != 3 || !bytes.HasSuffix(got.Stderr, []byte("end")) || !got.StderrTruncated {
		t.Errorf("code = %d (signal %v), tail ends in %q, want 3, %q",
			got.Code, got.Signal, got.Stderr[max(0, len(got.Stderr)-3):], "end")
	}
	if !errors.Is(got.WriteErr, syscall.EPIPE) {
		t.Errorf("WriteErr = %v, want EPIPE", got.WriteErr)
	}
}

func TestFullDisk(t *testing.T) { // scenario 61
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	spec := helper("noise:300000", "exit:4")
	spec.Stderr = proc.Sink{File: full, Tee: true}
	got := run(t, spec)
	if got.Code != 4 || !errors.Is(got.WriteErr, syscall.ENOSPC) {
		t.Errorf("code, WriteErr = %d, %v, want 4, ENOSPC", got.Code, got.WriteErr)
	}
}

func TestNonBlockingStderr(t *testing.T) { // scenario 60
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	filled := fillUp(t, w)
	stderr := inherited(t, w)
	w.Close()
	if err := unix.SetNonblock(int(stderr.Fd()), true); err != nil {
		t.Fatal(err)
	}
	spec := helper("hum:90000", "exit:6") // it fits into the child's pipe and one buffer
	spec.Stderr = proc.Sink{File: stderr, Tee: true}
	p := start(t, spec)
	await(t, p.Exited(), "exit")
	select {
	case <-p.Done():
		t.Fatalf("Done before anybody read, WriteErr = %v", p.Result().WriteErr)
	case <-time.After(20 * time.Millisecond):
	}
	var total int64
	read := make(chan struct{})
	go func() {
		total, _ = io.Copy(io.Discard, r)
		close(read)
	}()
	got := finish(t, p)
	stderr.Close()
	await(t, read, "end of stderr")
	if want := filled + 90000; got.Code != 6 || got.WriteErr != nil || total != want {
		t.Errorf("code, WriteErr, bytes = %d, %v, %d, want 6, nil, %d", got.Code, got.WriteErr, total, want)
	}
}

func TestSlowReaderLosesNothing(t *testing.T) { // scenario 62
	// In sum the reader takes much longer than WaitDelay. Where the machine keeps
	// it, or what serves it, from running for that long, it is rightly taken for
	// stuck; so more time is tried as well.
	var got proc.Result
	for _, delay := range []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, 2 * time.Second} {
		var gap time.Duration
		if got, gap = readSlowly(t, delay); got.WriteErr == nil && !got.LeftOpen {
			return
		}
		t.Logf("WaitDelay %v, longest time between two reads %v: WriteErr, LeftOpen = %v, %v", delay, gap, got.WriteErr, got.LeftOpen)
	}
	t.Errorf("WriteErr, LeftOpen = %v, %v, want nil, false", got.WriteErr, got.LeftOpen)
}

// readSlowly reads what a child has written to stderr in many small steps, each
// a fraction of delay after the other. It returns the longest time between two.
func readSlowly(t *testing.T, delay time.Duration) (got proc.Result, gap time.Duration) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w.Fd()
	const size = 150_000 // more than the reader's pipe holds, yet all of it can leave the child
	spec := helper("hum:150000")
	spec.Stderr = proc.Sink{File: w, Tee: true}
	spec.WaitDelay = delay
	p := start(t, spec)
	await(t, p.Exited(), "exit")
	buf := make([]byte, 4096)
	last := time.Now()
	for total := 0; total < size && gap < delay; {
		<-time.After(delay / 10)
		n, err := r.Read(buf)
		if err != nil {
			t.Fatal(err)
		}
		total += n
		gap, last = max(gap, time.Since(last)), time.Now()
	}
	if gap >= delay {
		go func() { _, _ = io.Copy(io.Discard, r) }()
	}
	return finish(t, p), gap
}

func TestStuckReader(t *testing.T) { // scenario 62
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() }) // frees the goroutine that is stuck in the write
	fillUp(t, w)
	t.Run("killed", func(t *testing.T) {
		spec := helper("err:late", `out:ready\n`, "hang:")
		spec.Stderr = proc.Sink{File: w, Tee: true}
		spec.WaitDelay = 10 * time.Millisecond
		p, out := startRead(t, spec)
		out.want("ready")
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		got := finish(t, p)
		if got.Signal != syscall.SIGKILL || !errors.Is(got.WriteErr, proc.ErrStuck) {
			t.Errorf("signal, WriteErr = %v, %v, want KILL, ErrStuck", got.Signal, got.WriteErr)
		}
	})
	t.Run("exited", func(t *testing.T) {
		spec := helper("err:late", "exit:1")
		spec.Stderr = proc.Sink{File: w, Tee: true}
		spec.WaitDelay = 10 * time.Millisecond
		got := finish(t, start(t, spec))
		if got.Code != 1 || !errors.Is(got.WriteErr, proc.ErrStuck) || string(got.Stderr) != "late" {
			t.Errorf("code, WriteErr, tail = %v, %v, %q, want 1, ErrStuck, %q", got.Code, got.WriteErr, got.Stderr, "late")
		}
	})
	t.Run("kill ends the wait for it", func(t *testing.T) {
		spec := helper("err:late", "exit:1")
		spec.Stderr = proc.Sink{File: w, Tee: true}
		spec.WaitDelay = time.Hour
		p := start(t, spec)
		await(t, p.Exited(), "exit")
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		if got := finish(t, p); got.Code != 1 {
			t.Errorf("code = %d, want 1", got.Code)
		}
	})
}

func TestMemoryStaysFlat(t *testing.T) { // scenario 53
	if testing.Short() {
		t.Skip("copies 256 MiB")
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	before := allocated()
	spec := helper("hum:268435456")
	spec.Stderr = proc.Sink{File: null, Tee: true}
	got := run(t, spec)
	if grown := allocated() - before; grown > 1<<20 {
		t.Errorf("256 MiB without a newline allocated %d bytes, want less than 1 MiB", grown)
	}
	if want := strings.Repeat("x", proc.TailBytes); string(got.Stderr) != want {
		t.Errorf("tail has %d bytes, want %d", len(got.Stderr), len(want))
	}
}

func TestLeftOpen(t *testing.T) { // scenarios 30, 31 and 32
	for _, code := range []string{"0", "3"} {
		in, hold, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer hold.Close()
		spec := helper(`spawn:cat:|out:alive\n`, "err:mine", "exit:"+code)
		spec.Stdin = in
		spec.Stderr.Tee = true
		spec.Group = proc.New
		spec.WaitDelay = 50 * time.Millisecond
		p, out := startRead(t, spec)
		in.Close()
		got := finish(t, p)
		if want := number(code); got.Code != want || !got.LeftOpen || string(got.Stderr) != "mine" {
			t.Errorf("code, LeftOpen, tail = %d, %v, %q, want %d, true, %q", got.Code, got.LeftOpen, got.Stderr, want, "mine")
		}
		hold.Close() // ends its cat, so it lived until now
		out.want("alive")
	}
}

func TestLeftoversAreDrainedUntilClose(t *testing.T) { // scenarios 30 and 63
	in, command, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer command.Close()
	w, errors := pipe(t)
	spec := helper(`spawn:readline:|err:late\n|readline:|err:still heard\n|readline:|err:too late\n|out:unharmed\n`)
	spec.Stdin = in
	spec.Stderr = proc.Sink{File: w, Tee: true}
	spec.WaitDelay = 10 * time.Millisecond
	p, out := startRead(t, spec)
	in.Close()
	got := finish(t, p)
	if !got.LeftOpen || len(got.Stderr) != 0 {
		t.Fatalf("LeftOpen, tail = %v, %q, want true, %q", got.LeftOpen, got.Stderr, "")
	}
	command.WriteString("\n")
	errors.want("late")
	if got := p.Result(); len(got.Stderr) != 0 {
		t.Errorf("tail after Done = %q, want %q", got.Stderr, "")
	}
	p.Release()
	command.WriteString("\n")
	errors.want("still heard") // not even that ends its output
	if !p.Lingers() {
		t.Error("Lingers() = false, want true")
	}
	p.Close()
	w.Close()
	errors.ended()
	command.WriteString("\n")
	out.ended() // its write failed: it died of SIGPIPE
}

// What was written before Close is passed on if our reader takes it in time. It is
// behind here until Close; where the machine keeps it so for too long, the next
// round shows.
func TestCloseTakesWhatIsThere(t *testing.T) { // scenario 30
	const words = "first words\nlast words\n"
	var got string
	for range 10 {
		if got = closeBehind(t); got == words {
			return
		}
	}
	t.Errorf("a reader that is behind gets %q, want %q", got, words)
}

// closeBehind closes a process whose leftover has said more than its reader has
// taken, and returns what that reader gets.
func closeBehind(t *testing.T) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	filled := fillUp(t, w)
	in, command := piped(t, "")
	defer command.Close()
	spec := helper(`spawn:readline:|err:first words\n|out:said\n|readline:|err:last words\n|out:said\n|readline:`)
	spec.Stdin = in
	spec.Stderr = proc.Sink{File: w, Tee: true}
	spec.WaitDelay = time.Millisecond
	p, out := startRead(t, spec)
	in.Close()
	finish(t, p)
	for range 2 {
		writeString(t, command, "\n")
		out.want("said")
	}
	var text []byte
	read := make(chan struct{})
	go func() {
		defer close(read)
		text, _ = io.ReadAll(r)
	}()
	p.Close()
	w.Close()
	await(t, read, "end of stderr")
	return string(text[filled:])
}

// inherited returns a file for the same pipe as a program finds its stderr: one
// whose mode Go has not set and will not set.
func inherited(t *testing.T, file *os.File) *os.File {
	t.Helper()
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Fatal(err)
	}
	same := os.NewFile(uintptr(fd), "inherited")
	t.Cleanup(func() { same.Close() })
	return same
}

// fillUp makes a pipe take nothing more, and blocking. It returns how many bytes
// it holds then.
func fillUp(t *testing.T, w *os.File) int64 {
	t.Helper()
	fd := int(w.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	total := int64(0)
	for {
		n, err := unix.Write(fd, make([]byte, 4096)) // all of it or nothing, as it is no more than PIPE_BUF
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			t.Fatalf("fill pipe: %v", err)
		}
		total += int64(max(n, 0))
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	return total
}

func allocated() uint64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.TotalAlloc
}
