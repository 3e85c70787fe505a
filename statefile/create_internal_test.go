package statefile

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Where a file cannot be made together with its content it is empty for a moment.
// These tests make files in that way on every system.

func unmade(t *testing.T) File {
	t.Helper()
	return File{Dir: Dir{Path: filepath.Join(t.TempDir(), "state")}, Sub: "records", Name: "r"}
}

func opened(t *testing.T, f File) *folder {
	t.Helper()
	h, err := f.Dir.open(f.Sub, true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.close)
	return h
}

func says(text string) func(Content) []byte {
	return func(Content) []byte { return []byte(text) }
}

func uncopied(t *testing.T, f File) {
	t.Helper()
	if _, err := os.Stat(f.Path() + ".corrupt"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that was being made was copied aside as damaged: %v", err)
	}
}

func TestCreateLocked(t *testing.T) {
	f := unmade(t)
	h := opened(t, f)
	if err := f.createLocked(h, func(Content) []byte { return nil }); err != nil {
		t.Errorf("createLocked(nothing) = %v, want nil", err)
	}
	if c, err := f.Read(); err != nil || c.State != Missing {
		t.Errorf("Read() after createLocked(nothing) = %+v, %v, want no file", c, err)
	}
	if err := f.createLocked(h, says("a")); err != nil {
		t.Errorf("createLocked(a) = %v, want nil", err)
	}
	if err := f.createLocked(h, says("b")); !errors.Is(err, errOtherFile) {
		t.Errorf("createLocked(b) of a file that is there = %v, want %v", err, errOtherFile)
	}
	c, err := f.Read()
	if err != nil || c.State != Intact || string(c.Payload) != "a" {
		t.Errorf("Read() = %+v, %v, want what came first", c, err)
	}
	if _, err := f.changeOr(t.Context(), File.createLocked, time.Second, says("c")); err != nil {
		t.Errorf("Change() of what was made = %v, want nil: the lock is free", err)
	}
}

// A maker that was slow finds its file in the hands of others and leaves it to
// them.
func TestFillLeavesWhatOthersTook(t *testing.T) {
	for name, take := range map[string]func(t *testing.T, f File) error{
		"locked": func(t *testing.T, f File) error {
			t.Helper()
			fd, err := unix.Open(f.Path(), unix.O_RDWR|unix.O_CLOEXEC, 0)
			t.Cleanup(func() { _ = unix.Close(fd) })
			return errors.Join(err, tryLock(fd))
		},
		"written": func(_ *testing.T, f File) error { return os.WriteFile(f.Path(), fresh([]byte("other")), 0o600) },
		"removed": func(_ *testing.T, f File) error { return os.Remove(f.Path()) },
		"replaced": func(_ *testing.T, f File) error {
			return errors.Join(os.Remove(f.Path()), os.WriteFile(f.Path(), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := unmade(t)
			h := opened(t, f)
			fd, id, err := createPlain(h, f.Name)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = unix.Close(fd) }()
			unlock(fd) // on systems that take the lock with the making
			if err := take(t, f); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(f.Path())
			if err := f.fill(h, fd, id, says("mine")); !errors.Is(err, errOtherFile) {
				t.Errorf("fill() = %v, want %v", err, errOtherFile)
			}
			if after, _ := os.ReadFile(f.Path()); !bytes.Equal(before, after) {
				t.Errorf("fill() changed a file that is not its own any more")
			}
		})
	}
}

// pauses is a context that acts when somebody begins to wait.
type pauses struct {
	context.Context //nolint:containedctx // it is a context
	n               int
	at              func(n int)
}

func (p *pauses) Done() <-chan struct{} {
	p.n++
	p.at(p.n)
	return p.Context.Done()
}

// Who finds a file empty waits without the lock until its maker has written it,
// and then sees what that wrote.
func TestWaitsForTheMaker(t *testing.T) {
	f := unmade(t)
	fd, _, err := createPlain(opened(t, f), f.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(fd) }()
	unlock(fd) // on systems that take the lock with the making
	finish := func(n int) {
		if n != 3 {
			return
		}
		if err := tryLock(fd); err != nil {
			t.Errorf("lock of the maker = %v, want it free", err)
		}
		if err := f.write(fd, fresh([]byte("maker")), 0); err != nil {
			t.Error(err)
		}
		unlock(fd)
	}
	ctx := &pauses{Context: t.Context(), at: finish}
	var seen []Content
	copied, err := f.changeOr(ctx, File.createLocked, time.Minute, func(c Content) []byte {
		seen = append(seen, c)
		return append(bytes.Clone(c.Payload), '+')
	})
	if err != nil || copied != "" {
		t.Fatalf("Change() = %q, %v, want no copy and no error", copied, err)
	}
	if len(seen) != 1 || seen[0].State != Intact || string(seen[0].Payload) != "maker" {
		t.Errorf("change saw %+v, want what the maker wrote, once", seen)
	}
	if ctx.n != 3 {
		t.Errorf("Change() waited %d times, want 3", ctx.n)
	}
	uncopied(t, f)
}

// A maker that died leaves an empty file. It is waited for a little, then taken
// for damaged, so that nothing is minted; a wait that is over ends it sooner.
func TestMakerThatDied(t *testing.T) {
	f := unmade(t)
	fd, _, err := createPlain(opened(t, f), f.Name)
	if err != nil {
		t.Fatal(err)
	}
	_ = unix.Close(fd)
	never := func(Content) []byte { t.Error("change was called, want a wait"); return nil }
	inner, cancel := context.WithCancel(t.Context())
	if _, err := f.changeOr(&pauses{Context: inner, at: func(int) { cancel() }}, File.createLocked, time.Minute, never); !errors.Is(err, context.Canceled) {
		t.Errorf("Change() when the context ends in the wait = %v, want %v", err, context.Canceled)
	}
	ctx := &pauses{Context: t.Context(), at: func(int) {}}
	var state State
	copied, err := f.changeOr(ctx, File.createLocked, time.Minute, func(c Content) []byte {
		state = c.State
		return []byte("restarted")
	})
	if err != nil || state != Damaged || copied == "" {
		t.Errorf("Change() = %q, %v with state %d, want a damaged file, copied", copied, err, state)
	}
	if ctx.n != creationPolls {
		t.Errorf("Change() waited %d times, want %d", ctx.n, creationPolls)
	}
	if c, err := f.Read(); err != nil || string(c.Payload) != "restarted" {
		t.Errorf("Read() = %+v, %v, want what was written", c, err)
	}
}

// Whoever of many is first makes the file, and every change counts, also where a
// maker stood still for so long that its empty file was taken for damaged.
func TestCrowdMakesOneFile(t *testing.T) {
	const rounds, crowd = 20, 8
	for range rounds {
		f := unmade(t)
		start := make(chan struct{})
		var all sync.WaitGroup
		for range crowd {
			all.Go(func() {
				<-start
				_, err := f.changeOr(context.Background(), File.createLocked, time.Minute, func(c Content) []byte {
					return append(bytes.Clone(c.Payload), 'x')
				})
				if err != nil {
					t.Errorf("Change() = %v, want nil", err)
				}
			})
		}
		close(start)
		all.Wait()
		if c, err := f.Read(); err != nil || len(c.Payload) != crowd {
			t.Errorf("Read() = %+v, %v, want %d changes", c, err, crowd)
		}
	}
}
