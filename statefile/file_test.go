package statefile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retryx/retryx/statefile"
)

const slot = 512 // half a record file

func TestChangeMakesAndKeeps(t *testing.T) {
	f := file(t)
	if c := read(t, f); c.State != statefile.Missing {
		t.Errorf("Read() of nothing = %+v, want missing", c)
	}
	if _, err := f.Change(t.Context(), 0, func(statefile.Content) []byte { return nil }); err != nil {
		t.Errorf("Change() to nothing = %v, want nil", err)
	}
	if _, err := os.Lstat(f.Path()); err == nil {
		t.Error("a change to nothing made the file")
	}
	for _, payload := range []string{"one", "", strings.Repeat("z", statefile.MaxPayload)} {
		put(t, f, payload)
		if c := read(t, f); c.State != statefile.Intact || string(c.Payload) != payload {
			t.Errorf("Read() = %+v, want %q", c, payload)
		}
	}
	before := raw(t, f)
	if _, err := f.Change(t.Context(), 0, func(statefile.Content) []byte { return nil }); err != nil || !bytes.Equal(before, raw(t, f)) {
		t.Errorf("Change() to nothing = %v and changed the bytes = %v, want neither", err, !bytes.Equal(before, raw(t, f)))
	}
	if _, err := f.Change(t.Context(), 0, func(statefile.Content) []byte { return make([]byte, statefile.MaxPayload+1) }); err == nil {
		t.Error("Change() to a payload that is too long = nil, want an error")
	}
}

// An update overwrites only the slot that is not current, in a file of fixed size.
func TestChangeWritesTheOtherSlot(t *testing.T) {
	f := file(t)
	put(t, f, "0")
	for i := range 6 {
		before := raw(t, f)
		put(t, f, string(rune('a'+i)))
		after := raw(t, f)
		if len(after) != 2*slot {
			t.Fatalf("the file has %d bytes, want %d", len(after), 2*slot)
		}
		if first, second := bytes.Equal(before[:slot], after[:slot]), bytes.Equal(before[slot:], after[slot:]); first == second {
			t.Fatalf("change %d left the slots equal: %v and %v, want exactly one", i, first, second)
		}
	}
}

// Property 22: whatever happens to one slot, the other one is the record, and the
// next change builds on it.
func TestOneSlotDamaged(t *testing.T) {
	f := file(t)
	put(t, f, "older")
	put(t, f, "newer")
	good := raw(t, f)
	if !bytes.Contains(good[slot:], []byte("newer")) {
		t.Fatal("the second change is not in the second slot")
	}
	check := func(what string, at int, data []byte) {
		t.Helper()
		overwrite(t, f, data)
		want := "newer"
		if at >= slot {
			want = "older"
		}
		if c := read(t, f); c.State != statefile.Intact || string(c.Payload) != want {
			t.Fatalf("%s at %d: Read() = %+v, want %q", what, at, c, want)
		}
		put(t, f, "next")
		if c := read(t, f); string(c.Payload) != "next" {
			t.Fatalf("%s at %d: Read() after a change = %+v, want next", what, at, c)
		}
	}
	for at := range good {
		data := bytes.Clone(good)
		data[at] ^= 1 << (at % 8)
		check("flip", at, data)
	}
	for at := range good {
		end := (at/slot + 1) * slot
		for what, fill := range map[string]byte{"zeros from": 0, "rubbish from": 0xa5} {
			data := bytes.Clone(good)
			for i := at; i < end; i++ {
				data[i] = fill
			}
			if bytes.Equal(data, good) {
				continue
			}
			check(what, at, data)
		}
	}
	seed := rand.Uint64()
	dice := rand.New(rand.NewPCG(seed, 0))
	for i := range 200 {
		data := bytes.Clone(good)
		at := i % 2 * slot
		for j := range slot {
			data[at+j] = byte(dice.Uint32())
		}
		check(fmt.Sprintf("random content of seed %d, round %d,", seed, i), at, data)
	}
}

// Property 22: a file that was cut off anywhere within its second slot is the
// record that stands in the first, and one that lost more is damaged. Either way
// the next change makes it whole again.
func TestTruncatedToEveryLength(t *testing.T) {
	f := file(t)
	put(t, f, "older")
	put(t, f, "newer")
	good := raw(t, f)
	for length := range good {
		overwrite(t, f, good[:length])
		want, payload := statefile.Intact, "older"
		if length < slot {
			want, payload = statefile.Damaged, ""
		}
		if c := read(t, f); c.State != want || string(c.Payload) != payload {
			t.Fatalf("cut to %d bytes: Read() = %+v, want state %d with %q", length, c, want, payload)
		}
		if copied := put(t, f, "next"); (copied != "") != (length < slot) {
			t.Fatalf("cut to %d bytes: Change() copied to %q, want a copy of what was damaged", length, copied)
		}
		if c := read(t, f); string(c.Payload) != "next" || len(raw(t, f)) != 2*slot {
			t.Fatalf("cut to %d bytes: Read() after a change = %+v of %d bytes, want next", length, c, len(raw(t, f)))
		}
	}
}

// A number that counting cannot reach is damage: nothing could follow it.
func TestImpossibleSequence(t *testing.T) {
	f := file(t)
	put(t, f, "a")
	put(t, f, "b")
	data := raw(t, f)
	overwrite(t, f, statefile.Reseal(data, 1, 1<<63))
	if c := read(t, f); string(c.Payload) != "a" {
		t.Errorf("Read() = %+v, want the other slot", c)
	}
	put(t, f, "c")
	if c := read(t, f); string(c.Payload) != "c" {
		t.Errorf("Read() after a change = %+v, want c", c)
	}
}

// Property 23: with both slots gone the bytes are kept aside, the file is
// rewritten in place, and the next change works.
func TestBothSlotsDamaged(t *testing.T) {
	f := file(t)
	for name, rubbish := range map[string][]byte{
		"empty":     {},
		"short":     []byte("rtyx"),
		"cut":       make([]byte, slot),
		"zeros":     make([]byte, 2*slot),
		"text":      []byte(strings.Repeat("hello ", 300)),
		"a byte on": make([]byte, 2*slot+1),
		"huge":      make([]byte, 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			put(t, f, "good")
			var before syscall.Stat_t
			_ = syscall.Stat(f.Path(), &before)
			overwrite(t, f, rubbish)
			if c := read(t, f); c.State != statefile.Damaged {
				t.Fatalf("Read() = %+v, want damaged", c)
			}
			copied := put(t, f, "new")
			if want := f.Path() + ".corrupt"; copied != want {
				t.Errorf("Change() copied to %q, want %q", copied, want)
			}
			kept, err := os.ReadFile(copied)
			if want := rubbish[:min(len(rubbish), 64<<10)]; err != nil || !bytes.Equal(kept, want) {
				t.Errorf("the copy has %d bytes (%v), want the %d that were there", len(kept), err, len(want))
			}
			var after syscall.Stat_t
			_ = syscall.Stat(f.Path(), &after)
			if before.Ino != after.Ino || after.Size != 2*slot {
				t.Errorf("the file was not rewritten in place: inode %d to %d, %d bytes", before.Ino, after.Ino, after.Size)
			}
			if again := put(t, f, "newer"); again != "" {
				t.Errorf("the next Change() copied to %q, want nothing", again)
			}
			if c := read(t, f); string(c.Payload) != "newer" {
				t.Errorf("Read() = %+v, want newer", c)
			}
		})
	}
}

// A copy that cannot be made does not stop the change.
func TestQuarantineIsBestEffort(t *testing.T) {
	f := file(t)
	put(t, f, "good")
	target := filepath.Join(t.TempDir(), "target")
	if err := os.Symlink(target, f.Path()+".corrupt"); err != nil {
		t.Fatal(err)
	}
	overwrite(t, f, []byte("rubbish"))
	if copied := put(t, f, "new"); copied != "" {
		t.Errorf("Change() copied to %q, want nowhere", copied)
	}
	if _, err := os.Stat(target); err == nil {
		t.Error("the copy went through a symbolic link")
	}
	if c := read(t, f); string(c.Payload) != "new" {
		t.Errorf("Read() = %+v, want new", c)
	}
}

// A payload that makes no sense to the caller counts as a damaged slot.
func TestValidDecides(t *testing.T) {
	f := file(t)
	put(t, f, "good")
	put(t, f, "bad")
	f.Valid = func(p []byte) bool { return string(p) != "bad" }
	if c := read(t, f); string(c.Payload) != "good" {
		t.Errorf("Read() = %+v, want the slot that makes sense", c)
	}
	f.Valid = func([]byte) bool { return false }
	if c := read(t, f); c.State != statefile.Damaged {
		t.Errorf("Read() = %+v, want damaged", c)
	}
}

// Property 27: what a newer version wrote is never touched, whether it kept the
// size of the file or not, or has rewritten only one slot so far.
func TestNewerVersionIsUntouched(t *testing.T) {
	f := file(t)
	put(t, f, "old")
	put(t, f, "new")
	data := raw(t, f)
	longer := append(statefile.Reversion(data, 0, 2), make([]byte, 4096)...)
	for name, newer := range map[string][]byte{
		"one slot":   statefile.Reversion(data, 1, 2),
		"both slots": statefile.Reversion(statefile.Reversion(data, 0, 2), 1, 2),
		"longer":     longer,
	} {
		t.Run(name, func(t *testing.T) {
			overwrite(t, f, newer)
			if _, err := f.Read(); !errors.Is(err, statefile.ErrNewer) || !statefile.Unusable(err) {
				t.Errorf("Read() = %v, want ErrNewer, unusable", err)
			}
			_, err := f.Change(t.Context(), time.Second, func(statefile.Content) []byte { return []byte("x") })
			if !errors.Is(err, statefile.ErrNewer) {
				t.Errorf("Change() = %v, want ErrNewer", err)
			}
			if !bytes.Equal(raw(t, f), newer) {
				t.Error("the file was touched")
			}
		})
	}
}

// hold keeps the lock of f until the returned function is called.
func hold(t *testing.T, f statefile.File) (release func()) {
	t.Helper()
	locked, free, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		first := true
		_, err := f.Change(context.Background(), time.Second, func(c statefile.Content) []byte {
			if first && c.State == statefile.Intact {
				first = false
				close(locked)
				<-free
			}
			return append(slices.Clone(c.Payload), 'h')
		})
		done <- err
	}()
	<-locked
	return func() {
		t.Helper()
		close(free)
		if err := <-done; err != nil {
			t.Errorf("Change() of the holder = %v, want nil", err)
		}
	}
}

// The wait for the lock is bounded, ends with the context, and is no wait at all
// when the lock is free.
func TestLockWait(t *testing.T) {
	f := file(t)
	put(t, f, "x")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Change(gone, time.Hour, func(c statefile.Content) []byte { return c.Payload }); err != nil {
		t.Errorf("Change() of a free record after the end of the context = %v, want nil", err)
	}
	release := hold(t, f)
	change := func(statefile.Content) []byte { t.Error("change was called without the lock"); return nil }
	begun := time.Now()
	_, err := f.Change(t.Context(), 30*time.Millisecond, change)
	if took := time.Since(begun); !errors.Is(err, statefile.ErrBusy) || took < 30*time.Millisecond {
		t.Errorf("Change() of a locked record = %v after %v, want ErrBusy after 30ms", err, took)
	}
	if statefile.Unusable(err) {
		t.Error("Unusable(ErrBusy) = true, want false")
	}
	if _, err = f.Change(gone, time.Hour, change); !errors.Is(err, context.Canceled) {
		t.Errorf("Change() of a locked record after the end of the context = %v, want it at once", err)
	}
	if c := read(t, f); string(c.Payload) != "x" {
		t.Errorf("Read() of a locked record = %+v, want x", c)
	}
	release()
	if c := read(t, f); string(c.Payload) != "xh" {
		t.Errorf("Read() = %+v, want what the holder wrote", c)
	}
}

// Property 19: who waited for the lock of a file that was replaced begins again
// with the file that is there now.
func TestReplacedWhileWaiting(t *testing.T) {
	f := file(t)
	put(t, f, "old")
	release := hold(t, f)
	waiter := make(chan error, 1)
	go func() {
		_, err := f.Change(context.Background(), 10*time.Second, func(c statefile.Content) []byte {
			return append(slices.Clone(c.Payload), 'w')
		})
		waiter <- err
	}()
	other := statefile.File{Dir: f.Dir, Sub: f.Sub, Name: "other"}
	put(t, other, "new")
	for descriptors(t, f.Path()) < 2 { // the holder's and the waiter's
		runtime.Gosched()
	}
	if err := os.Rename(other.Path(), f.Path()); err != nil {
		t.Fatal(err)
	}
	release()
	if err := <-waiter; err != nil {
		t.Fatalf("Change() = %v, want nil", err)
	}
	if c := read(t, f); string(c.Payload) != "neww" {
		t.Errorf("Read() = %+v, want the change in the new file", c)
	}
	if err := os.Remove(f.Path()); err != nil {
		t.Fatal(err)
	}
	if err := grow(f); err != nil {
		t.Fatal(err)
	}
	if c := read(t, f); string(c.Payload) != "x" {
		t.Errorf("Read() after a removal = %+v, want a new file", c)
	}
}

// descriptors counts those of this process that are open on a file.
func descriptors(t *testing.T, path string) int {
	t.Helper()
	var want, st unix.Stat_t
	if err := unix.Stat(path, &want); err != nil {
		t.Fatal(err)
	}
	open := 0
	for fd := range 1024 {
		if unix.Fstat(fd, &st) == nil && st.Dev == want.Dev && st.Ino == want.Ino {
			open++
		}
	}
	return open
}

// Property 28: what is not a plain file of ours is refused and left alone.
func TestRefusedPaths(t *testing.T) {
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, obstruct := range map[string]func(path string) error{
		"symlink":   func(path string) error { return os.Symlink(victim, path) },
		"dangling":  func(path string) error { return os.Symlink(victim+"x", path) },
		"hard link": func(path string) error { return os.Link(victim, path) },
		"fifo":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
		"others may write": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chmod(path, 0o602))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := file(t)
			put(t, statefile.File{Dir: f.Dir, Sub: f.Sub, Name: "first"}, "")
			if err := obstruct(f.Path()); err != nil {
				t.Fatal(err)
			}
			checkRefused(t, f)
			if data, err := os.ReadFile(victim); string(data) != "precious" || err != nil {
				t.Errorf("the target is %q, %v, want it untouched", data, err)
			}
			if _, err := os.Lstat(victim + "x"); err == nil {
				t.Error("a dangling link was followed")
			}
		})
	}
}

func checkRefused(t *testing.T, f statefile.File) {
	t.Helper()
	var refused *statefile.RefusedError
	if _, err := f.Read(); !errors.As(err, &refused) {
		t.Errorf("Read() = %v, want a refusal", err)
	}
	_, err := f.Change(t.Context(), time.Second, func(statefile.Content) []byte { return []byte("x") })
	if !errors.As(err, &refused) || !statefile.Unusable(err) {
		t.Errorf("Change() = %v, want a refusal, unusable", err)
	}
}

// Property 28 for what only root can set up.
func TestRefusedForeignFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can make devices and give files away")
	}
	for name, obstruct := range map[string]func(path string) error{
		"device": mknod,
		"foreign owner": func(path string) error {
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Chown(path, 60001, 60001))
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := file(t)
			put(t, statefile.File{Dir: f.Dir, Sub: f.Sub, Name: "first"}, "")
			if err := obstruct(f.Path()); err != nil {
				t.Skip("cannot set up: ", err)
			}
			checkRefused(t, f)
		})
	}
}

func TestRefusedDirectories(t *testing.T) {
	for name, mode := range map[string]os.FileMode{"others": 0o702, "sticky": 0o777 | os.ModeSticky, "all": 0o777} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Chmod(dir, mode); err != nil {
				t.Fatal(err)
			}
			checkRefused(t, statefile.File{Dir: statefile.Dir{Path: dir}, Sub: "records", Name: "r"})
			if err := (statefile.Dir{Path: dir}).Check(); err == nil {
				t.Error("Check() = nil, want a refusal")
			}
		})
	}
	t.Run("records is a link", func(t *testing.T) {
		f := file(t)
		if err := errors.Join(os.Mkdir(f.Dir.Path, 0o700), os.Symlink(t.TempDir(), filepath.Join(f.Dir.Path, f.Sub))); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Read(); err == nil || !statefile.Unusable(err) {
			t.Errorf("Read() = %v, want it unusable", err)
		}
	})
	t.Run("a file", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		f := statefile.File{Dir: statefile.Dir{Path: path}, Sub: "records", Name: "r"}
		if _, err := f.Change(t.Context(), 0, func(statefile.Content) []byte { return nil }); !statefile.Unusable(err) {
			t.Errorf("Change() = %v, want it unusable", err)
		}
	})
}

// Property 37: whatever the umask, what is made is for its user alone.
func TestModes(t *testing.T) {
	umasks := []int{0, 0o022, 0o077, 0o377}
	if os.Geteuid() == 0 { // nobody else can enter a directory that he has made so
		umasks = append(umasks, 0o777)
	}
	before := syscall.Umask(0o077)
	defer syscall.Umask(before) // also after a failure
	for _, umask := range umasks {
		f := file(t)
		old := syscall.Umask(umask)
		put(t, f, "x")
		put(t, f, "y")
		err := statefile.Journal{Dir: f.Dir, Name: "j"}.Append(t.Context(), 0, []byte("{}"))
		syscall.Umask(old)
		if err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]os.FileMode{
			f.Dir.Path: 0o700, filepath.Dir(f.Path()): 0o700, f.Path(): 0o600, filepath.Join(f.Dir.Path, "j"): 0o600,
		} {
			info, err := os.Stat(path)
			if err != nil || info.Mode().Perm() != want {
				t.Errorf("under umask %o %s has mode %v (%v), want %v", umask, path, info.Mode(), err, want)
			}
		}
	}
}

// Any bytes at all: reading does not panic, a change repairs them, and what it
// wrote is there.
func FuzzRecordBytes(f *testing.F) {
	f.Add([]byte{}, uint16(0))
	f.Add([]byte("rtyx\x02\x00"), uint16(1))
	f.Add(bytes.Repeat([]byte{0xff}, 2*slot), uint16(512))
	f.Fuzz(func(t *testing.T, patch []byte, at uint16) {
		rec := file(t)
		put(t, rec, "one")
		put(t, rec, "two")
		data := raw(t, rec)
		if at%2 == 0 {
			data = patch
		} else {
			copy(data[min(int(at), len(data)):], patch)
		}
		overwrite(t, rec, data)
		c, err := rec.Read()
		if errors.Is(err, statefile.ErrNewer) {
			return
		}
		if err != nil {
			t.Fatalf("Read() = %v, want nil", err)
		}
		if s := string(c.Payload); c.State == statefile.Intact && s != "one" && s != "two" && !bytes.Contains(patch, c.Payload) {
			t.Fatalf("Read() = %q, want what was written", s)
		}
		put(t, rec, "three")
		if c := read(t, rec); string(c.Payload) != "three" {
			t.Fatalf("Read() after a change = %+v, want three", c)
		}
	})
}
