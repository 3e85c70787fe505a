package cmd

// What a nested retryx leaves with the one above it, beside that one's hint
// file: the line with its outcome, and the count of equal calls.
//
// The path comes from the environment, and under sudo from somebody else's. So
// nothing is opened or made but plain files in a directory that has the name and
// the rights of one that retryx made, and never through a symlink.

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retryx/retryx/classify"
	"github.com/retryx/retryx/exec"
)

const (
	ordinalSuffix = ".calls"
	ordinalWait   = 250 * time.Millisecond // for the lock of the count
	ordinalPoll   = 2 * time.Millisecond
)

// tellParent appends our own outcome to the hint file of the retryx above, and
// whose breakers have been told of it.
func tellParent(path string, o *exec.Outcome, told []string) error {
	if path == "" {
		return nil
	}
	n := nestedOutcome{Outcome: string(o.Label), Reason: string(o.Reason), Breakers: told}
	if last := o.Last(); last != nil {
		n.Class = string(last.Verdict.Class)
	}
	n.RetryAfterMS = o.StatedWait.Milliseconds()
	return appendNested(path, n)
}

// appendNested writes nothing where that would only repeat the last such line, so
// that any number of calls fits into the limit of the file.
func appendNested(path string, n nestedOutcome) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	f, err := openBeside(path, os.O_APPEND)
	if err != nil {
		return err
	}
	defer f.Close()
	line := append(append([]byte("nested="), text...), '\n')
	if data, _, err := readEnd(f, hintLimit); err == nil && bytes.Equal(lastNested(data), line) {
		return nil
	}
	_, err = f.Write(line)
	return err
}

// confess tells the retryx above that what we were given is wrong, which no
// retry changes. There is no outcome to tell of, as nothing has run.
func confess(path string) {
	if path != "" { // the error on stderr says it as well
		_ = appendNested(path, nestedOutcome{
			Outcome: string(exec.HardFailure), Reason: string(classify.Config), Class: string(classify.Config),
		})
	}
}

// lastNested is the last line of a hint file that a nested retryx wrote, nil
// when there is none.
func lastNested(data []byte) []byte {
	var last []byte
	for line := range bytes.Lines(data) {
		if bytes.HasPrefix(line, []byte("nested=")) {
			last = line
		}
	}
	return last
}

// openBeside opens a hint file of the retryx above, or what stands beside it,
// and makes it if it is missing.
func openBeside(path string, flags int) (*os.File, error) {
	dir, owner, err := openHintsOf(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	f, err := openOrMake(int(dir.Fd()), filepath.Base(path), flags, owner)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	if err := ownFile(f, owner); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// openHintsOf opens the directory of the retryx above and says who owns it: we,
// or whoever root now works for.
func openHintsOf(path string) (dir *os.File, owner int, err error) {
	dir, err = os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := dir.Stat()
	if err != nil {
		dir.Close()
		return nil, 0, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	private := ok && info.Mode().Perm()&0o077 == 0 && filepath.Base(path) == hintsDir
	if !private || int(st.Uid) != os.Geteuid() && os.Geteuid() != 0 {
		dir.Close()
		return nil, 0, fmt.Errorf("use %s: not a private directory of a retryx of this user", path)
	}
	return dir, int(st.Uid), nil
}

// openOrMake opens a file in dir. What root makes is handed to the owner of dir,
// who has to read it.
func openOrMake(dir int, name string, flags, owner int) (*os.File, error) {
	flags |= os.O_RDWR | unix.O_NOFOLLOW | unix.O_NONBLOCK | unix.O_CLOEXEC
	for range 3 { // a sibling may make it, and the one above remove it, meanwhile
		fd, err := retried(func() (int, error) { return unix.Openat(dir, name, flags, 0) })
		if errors.Is(err, unix.ENOENT) {
			fd, err = retried(func() (int, error) { return unix.Openat(dir, name, flags|unix.O_CREAT|unix.O_EXCL, 0o600) })
			if err == nil && owner != os.Geteuid() {
				err = unix.Fchown(fd, owner, -1)
			}
		}
		if err == nil {
			return os.NewFile(uintptr(fd), name), nil
		}
		if !errors.Is(err, unix.EEXIST) {
			return nil, err
		}
	}
	return nil, unix.EEXIST
}

// ordinal counts the calls with this hash under one attempt of the retryx above,
// this one excluded. The file holds a hash and a count for each call there was.
func ordinal(hintPath string, call [sha256.Size]byte) (int, error) {
	f, err := openBeside(hintPath+ordinalSuffix, 0)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := lockWithin(f, ordinalWait); err != nil {
		return 0, err
	}
	defer unix.Flock(int(f.Fd()), unix.LOCK_UN) //nolint:errcheck // closing unlocks as well
	data, err := io.ReadAll(f)
	if err != nil {
		return 0, err
	}
	const entry = len(call) + 8
	at := len(data) / entry * entry
	for i := 0; i+entry <= len(data); i += entry {
		if bytes.Equal(data[i:i+len(call)], call[:]) {
			at = i
			break
		}
	}
	n := uint64(0)
	if at+entry <= len(data) {
		n = binary.BigEndian.Uint64(data[at+len(call):])
	}
	_, err = f.WriteAt(binary.BigEndian.AppendUint64(call[:], n+1), int64(at))
	return int(n), err
}

// lockWithin takes the lock of f. A blocked flock would not end, and it would
// hold up a command that has not even started.
func lockWithin(f *os.File, wait time.Duration) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for begun := time.Now(); ; timer.Reset(ordinalPoll) {
		<-timer.C
		_, err := retried(func() (int, error) { return 0, unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		if time.Since(begun) >= wait {
			return fmt.Errorf("locked for more than %s", wait)
		}
	}
}
