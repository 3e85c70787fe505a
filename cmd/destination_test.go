package cmd

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestCheckDestination(t *testing.T) {
	for _, tt := range []struct{ spec, want string }{
		{"stderr", ""},
		{"none", ""},
		{"fd:3", ""},
		{"fd:2", ""},
		{"/dev/stderr", ""},
		{"/dev/fd/63", ""},
		{"outcome.json", ""},
		{"./stdout", ""},
		{"/var/log/x.json", ""},
		{"stdout", "stdout belongs to the command; use stderr, fd:N or a file"},
		{"-", "- belongs to the command; use stderr, fd:N or a file"},
		{"fd:1", "fd:1 belongs to the command; use stderr, fd:N or a file"},
		{"/dev/stdout", "/dev/stdout belongs to the command; use stderr, fd:N or a file"},
		{"/proc/self/fd/1", "/proc/self/fd/1 belongs to the command; use stderr, fd:N or a file"},
		{"fd:0", "fd:0 is the command's input; use stderr, fd:N or a file"},
		{"fd:x", `want fd:N with a number, as in fd:3, not "fd:x"`},
		{"fd:", `want fd:N with a number, as in fd:3, not "fd:"`},
		{"fd:-1", `want fd:N with a number, as in fd:3, not "fd:-1"`},
		{"fd:99999999999", `want fd:N with a number, as in fd:3, not "fd:99999999999"`},
		{"", `want stderr, none, fd:N or a file, not ""`},
		{"dir/", `want stderr, none, fd:N or a file, not "dir/"`},
		{"a\x00b", `want stderr, none, fd:N or a file, not "a\x00b"`},
	} {
		got := ""
		if err := checkDestination(tt.spec); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("checkDestination(%q) = %q, want %q", tt.spec, got, tt.want)
		}
	}
}

func sample() *document { return newDocument(denied(), deniedFacts()) }

// long is a document whose full line does not fit into a pipe.
func long() *document {
	f := deniedFacts()
	f.command = []string{"x", strings.Repeat("a", 300_000)}
	return newDocument(denied(), f)
}

func mustOpen(t *testing.T, spec string, stderr *os.File) *destination {
	t.Helper()
	d, err := openDestination(spec, stderr)
	if err != nil {
		t.Fatalf("openDestination(%q) = %v", spec, err)
	}
	if d.own {
		t.Cleanup(func() { unix.Close(d.fd) })
	}
	return d
}

func mustWrite(t *testing.T, d *destination, doc *document) {
	t.Helper()
	if err := d.write(doc); err != nil {
		t.Errorf("write() = %v", err)
	}
}

func mustPipe(t *testing.T) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); w.Close() })
	return r, w
}

// inheritable opens a descriptor as a parent process leaves it.
func inheritable(t *testing.T, f *os.File) int {
	t.Helper()
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD, 100)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestDestinationFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outcome.json")
	doc := long()
	for range 2 {
		mustWrite(t, mustOpen(t, path, os.Stderr), doc)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := bytes.Repeat(doc.full(), 2); !bytes.Equal(got, want) {
		t.Errorf("file has %d bytes, want the outcome in full twice, %d bytes", len(got), len(want))
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := info.Mode().Perm(); got != 0o600 {
		t.Errorf("mode = %o, want 600", got)
	}
}

func TestDestinationFileIsThereBeforeTheRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outcome.json")
	d := mustOpen(t, path, os.Stderr)
	if _, err := os.Stat(path); err != nil {
		t.Errorf("stat after opening: %v", err)
	}
	flags, err := unix.FcntlInt(uintptr(d.fd), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags of the file = %#x, %v, want it closed on exec", flags, err)
	}
}

func TestDestinationThatCannotBe(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	r, w := mustPipe(t)
	reading := inheritable(t, r)
	closed := inheritable(t, w)
	unix.Close(closed)
	own, err := unix.FcntlInt(w.Fd(), unix.F_DUPFD_CLOEXEC, 100)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(own) })

	for _, tt := range []struct{ spec, want string }{
		{filepath.Join(dir, "none", "x"), "its directory does not exist; make it first"},
		{dir, "it is a directory; name a file in it"},
		{fifo, "nobody reads it; start its reader first"},
		{"fd:9999", "descriptor 9999 is not open; open it where retryx is started, as in 9999>outcome.json"},
		{fmt.Sprint("fd:", own), "is not open; open it where retryx is started"},
		{fmt.Sprint("fd:", reading), "is not open for writing"},
		{"stdout", "belongs to the command"},
	} {
		if d, err := openDestination(tt.spec, os.Stderr); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("openDestination(%q) = %v, %v, want an error with %q", tt.spec, d, err, tt.want)
		}
	}
}

func TestDestinationFollowsOwnSymlink(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("target", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	mustWrite(t, mustOpen(t, filepath.Join(dir, "link"), os.Stderr), sample())
	if got, err := os.ReadFile(filepath.Join(dir, "target")); err != nil || !bytes.Equal(got, sample().full()) {
		t.Errorf("target = %q, %v, want the outcome", got, err)
	}
}

func TestDestinationRefusesForeignSymlink(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a symlink away")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("target", link); err != nil {
		t.Fatal(err)
	}
	if err := os.Lchown(link, 12345, 12345); err != nil {
		t.Skip(err)
	}
	if d, err := openDestination(link, os.Stderr); err == nil {
		t.Errorf("openDestination(foreign symlink) = %v, want an error", d)
	}
}

func TestDestinationNone(t *testing.T) {
	mustWrite(t, mustOpen(t, "none", nil), sample())
}

func TestDestinationDescriptor(t *testing.T) {
	for _, nonblocking := range []bool{false, true} {
		t.Run(fmt.Sprint("nonblocking=", nonblocking), func(t *testing.T) { writeToSlowReader(t, nonblocking) })
	}
}

func writeToSlowReader(t *testing.T, nonblocking bool) {
	t.Helper()
	r, w := mustPipe(t)
	fd := inheritable(t, w)
	d := mustOpen(t, fmt.Sprint("fd:", fd), os.Stderr)
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("flags of fd:%d = %#x, %v, want it closed on exec", fd, flags, err)
	}
	if err := unix.SetNonblock(fd, nonblocking); err != nil {
		t.Fatal(err)
	}
	doc := long()
	want := doc.full()
	got := make(chan []byte)
	go func() { // a reader slower than the pipe is wide
		var all []byte
		buf := make([]byte, 1000)
		for len(all) < len(want) {
			n, err := r.Read(buf)
			if err != nil {
				break
			}
			all = append(all, buf[:n]...)
		}
		got <- all
	}()
	mustWrite(t, d, doc)
	if all := <-got; !bytes.Equal(all, want) {
		t.Errorf("reader got %d bytes, want the whole line, %d bytes", len(all), len(want))
	}
}

func TestDestinationStderr(t *testing.T) {
	for _, nonblocking := range []bool{false, true} {
		r, w := mustPipe(t)
		d := mustOpen(t, "stderr", w)
		if err := unix.SetNonblock(d.fd, nonblocking); err != nil {
			t.Fatal(err)
		}
		doc := long()
		mustWrite(t, d, doc)
		flags, err := unix.FcntlInt(uintptr(d.fd), unix.F_GETFL, 0)
		if err != nil || (flags&unix.O_NONBLOCK != 0) != nonblocking {
			t.Errorf("flags after write = %#x, %v, want O_NONBLOCK left at %t", flags, err, nonblocking)
		}
		w.Close()
		got, err := io.ReadAll(r)
		if err != nil || len(got) > stderrLimit || !bytes.Equal(got, doc.line(stderrLimit)) {
			t.Errorf("stderr got %d bytes, %v, want one line of at most %d", len(got), err, stderrLimit)
		}
		validateOutcome(t, got)
	}
}

// fill makes a pipe take nothing more.
func fill(t *testing.T, w *os.File, nonblocking bool) {
	t.Helper()
	fd := int(w.Fd())
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for size := 4096; size > 0; {
		if _, err := unix.Write(fd, make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if err := unix.SetNonblock(fd, nonblocking); err != nil {
		t.Fatal(err)
	}
}

func TestDestinationGivesUpOnAStuckReader(t *testing.T) {
	for _, nonblocking := range []bool{false, true} {
		t.Run(fmt.Sprint("nonblocking=", nonblocking), func(t *testing.T) {
			t.Parallel()
			// Left open: a writer that was given up writes on, and after a close that
			// would be into whatever file of another test has got the number.
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer runtime.KeepAlive(r)
			d := mustOpen(t, "stderr", w)
			fill(t, w, nonblocking)
			from := time.Now()
			if err := d.write(sample()); err == nil {
				t.Error("write(full pipe) = nil, want an error")
			}
			if took := time.Since(from); took < stderrPatience {
				t.Errorf("write(full pipe) gave up after %s, want %s", took, stderrPatience)
			}
		})
	}
}

func TestDestinationSurvivesAGoneReader(t *testing.T) {
	r, w := mustPipe(t)
	r.Close()
	for _, spec := range []string{"stderr", fmt.Sprint("fd:", inheritable(t, w))} {
		if err := mustOpen(t, spec, w).write(sample()); !errors.Is(err, unix.EPIPE) {
			t.Errorf("write(%s without a reader) = %v, want %v", spec, err, unix.EPIPE)
		}
	}
}

func TestDestinationSurvivesAFullDisk(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	if err := mustOpen(t, "/dev/full", nil).write(sample()); !errors.Is(err, unix.ENOSPC) {
		t.Errorf("write(/dev/full) = %v, want %v", err, unix.ENOSPC)
	}
}

// A write that was cut short leaves the file as it was. The limit of the size
// of files stands for the size of the disk.
func TestDestinationTakesAShortWriteBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outcome.json")
	doc := long()
	first := sample().full()
	if err := os.WriteFile(path, first, 0o600); err != nil {
		t.Fatal(err)
	}
	d := mustOpen(t, path, nil)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	limited := before
	limited.Cur = 100_000 // more than the first line, less than both
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limited); err != nil {
		t.Skip(err)
	}
	err := d.write(doc)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		t.Fatal(err)
	}
	if err == nil {
		t.Error("write(file at its limit) = nil, want an error")
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, first) {
		t.Errorf("file has %d bytes, %v, want the %d that were there", len(got), err, len(first))
	}
}

// Many writers at once leave only whole lines.
func TestDestinationFileIsSharedByLines(t *testing.T) {
	const writers = 20
	path := filepath.Join(t.TempDir(), "outcome.json")
	doc := long()
	var wg sync.WaitGroup
	for range writers {
		d := mustOpen(t, path, nil)
		wg.Go(func() {
			if err := d.write(doc); err != nil {
				t.Errorf("write() = %v", err)
			}
		})
	}
	wg.Wait()
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, bytes.Repeat(doc.full(), writers)) {
		t.Errorf("file has %d bytes, %v, want %d whole lines", len(got), err, writers)
	}
}

// A lock that somebody holds for ever costs the outcome, not the end of the run.
func TestDestinationWaitsForTheLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outcome.json")
	// Left open: the writer that is given up gets the lock in the end, and after a
	// close would write into whatever file of another test has got the number.
	d, err := openDestination(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	d.patience = 50 * time.Millisecond
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := d.write(sample()); err == nil {
		t.Error("write(locked file) = nil, want an error")
	}
	if info, err := f.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("locked file has %d bytes, %v, want none", info.Size(), err)
	}
}
