package statefile

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// State says what was found at a path.
type State int

// The states.
const (
	Missing State = iota // there is no file
	Intact
	Damaged // neither slot is valid
)

// Content is what a file holds.
type Content struct {
	State   State
	Payload []byte // of the current slot; nil unless Intact
}

// File is a record in a directory of a state directory.
type File struct {
	Dir   Dir
	Sub   string            // the directory below Dir
	Name  string            // the file in it
	Valid func([]byte) bool // whether a payload makes sense; nil: any does
}

// maxReopen bounds how often a file that is replaced meanwhile is opened again;
// creationPolls is how often a file that is being made is looked at again, and
// creationPoll how long after the last look.
const (
	maxReopen     = 3
	creationPolls = 10
	creationPoll  = 16 * time.Millisecond
)

// Path returns where the file is.
func (f File) Path() string { return filepath.Join(f.Dir.Path, f.Sub, f.Name) }

// Read returns the content without a lock and without writing anything; it does
// not wait for anybody. What it returns was current at some moment during the
// call.
func (f File) Read() (Content, error) {
	h, err := f.Dir.open(f.Sub, false)
	if errors.Is(err, fs.ErrNotExist) {
		return Content{}, nil
	}
	if err != nil {
		return Content{}, err
	}
	defer h.close()
	fd, _, err := openChecked(h, f.Name, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return Content{}, nil
	}
	if err != nil {
		return Content{}, err
	}
	defer func() { _ = unix.Close(fd) }()
	// A reader may meet both slots half-written when writers follow each other
	// closely; it is as good as impossible three times in a row.
	var s slots
	for range maxReopen {
		if s, err = f.read(fd); err != nil || s.newer || s.payload != nil {
			break
		}
	}
	return f.content(s, err)
}

// Change calls change with the current content under the lock and writes what it
// returns; nil writes nothing. It waits for the lock at most for wait, and not
// past the end of ctx, but always tries once. change may be called more than
// once and must not wait for anything.
//
// A damaged file is copied to Path() + CorruptSuffix, as far as that is possible,
// and rewritten in place; copied reports where to.
func (f File) Change(ctx context.Context, wait time.Duration, change func(Content) []byte) (copied string, err error) {
	return f.changeOr(ctx, File.create, wait, change)
}

// maker makes a missing file with what change returns. It fails with
// errOtherFile when somebody else was faster.
type maker func(f File, h *folder, change func(Content) []byte) error

func (f File) changeOr(ctx context.Context, create maker, wait time.Duration, change func(Content) []byte) (copied string, err error) {
	h, err := f.Dir.open(f.Sub, true)
	if err != nil {
		return "", err
	}
	defer h.close()
	for try, polls := 0, 0; try < maxReopen; {
		copied, err = f.attempt(ctx, h, wait, polls < creationPolls, change)
		if errors.Is(err, errMissing) {
			err = create(f, h, change)
		}
		switch {
		case errors.Is(err, errBeingMade):
			polls++
			if err := pause(ctx, jitter(creationPoll)); err != nil {
				return "", err
			}
		case errors.Is(err, errOtherFile):
			try++
		default:
			return copied, err
		}
	}
	return "", pathError("lock", f.Path(), ErrReplaced)
}

// Reasons to begin again.
var (
	errOtherFile = errors.New("the path names another file now")
	errBeingMade = errors.New("the file is being made")
	errMissing   = errors.New("there is no file")
)

func (f File) attempt(ctx context.Context, h *folder, wait time.Duration, young bool, change func(Content) []byte) (string, error) {
	fd, id, err := openChecked(h, f.Name, unix.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return "", errMissing
	}
	if err != nil {
		return "", err
	}
	defer func() { _ = unix.Close(fd) }()
	if err := lock(ctx, fd, wait); err != nil {
		return "", pathError("lock", f.Path(), err)
	}
	defer unlock(fd)
	size, err := sameFile(h, f.Name, id)
	if err != nil {
		return "", err
	}
	if size == 0 && young {
		return "", errBeingMade
	}
	return f.rewrite(h, fd, change)
}

// rewrite applies a change to a file that is locked.
func (f File) rewrite(h *folder, fd int, change func(Content) []byte) (string, error) {
	s, err := f.read(fd)
	content, err := f.content(s, err)
	if err != nil {
		return "", err
	}
	payload := change(content)
	switch {
	case payload == nil:
		return "", nil
	case len(payload) > MaxPayload:
		return "", pathError("write", f.Path(), errors.New("payload too long"))
	case content.State == Intact:
		other := 1 - s.at
		return "", f.write(fd, seal(payload, s.seq+1), int64(other*slotSize))
	}
	copied := f.quarantine(h, fd)
	if err := unix.Ftruncate(fd, fileSize); err != nil {
		return copied, pathError("truncate", f.Path(), err)
	}
	return copied, f.write(fd, fresh(payload), 0)
}

// fresh is the content of a new file.
func fresh(payload []byte) []byte {
	return append(seal(payload, 1), seal(payload, 0)...)
}

func (f File) content(s slots, err error) (Content, error) {
	switch {
	case err != nil:
		return Content{}, err
	case s.newer:
		return Content{}, pathError("read", f.Path(), ErrNewer)
	case s.payload == nil:
		return Content{State: Damaged}, nil
	}
	return Content{State: Intact, Payload: s.payload}, nil
}

// read reads both slots; a byte more tells a file that is too long.
func (f File) read(fd int) (slots, error) {
	data := make([]byte, fileSize+1)
	n, err := retryInt(func() (int, error) { return unix.Pread(fd, data, 0) })
	if err != nil {
		return slots{}, pathError("read", f.Path(), err)
	}
	valid := f.Valid
	if valid == nil {
		valid = func([]byte) bool { return true }
	}
	return readSlots(data[:n], valid), nil
}

// write is one system call: a process that is killed has written all or nothing.
func (f File) write(fd int, data []byte, offset int64) error {
	n, err := retryInt(func() (int, error) { return unix.Pwrite(fd, data, offset) })
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return pathError("write", f.Path(), err)
	}
	return nil
}

// identity tells one file from another.
type identity struct {
	dev, ino uint64
}

func identify(st *unix.Stat_t) identity {
	return identity{uint64(st.Dev), uint64(st.Ino)} //nolint:unconvert // narrower on other systems
}

// openChecked opens a file if it is one that may be used. O_NONBLOCK keeps a FIFO
// from blocking before it is recognised.
func openChecked(h *folder, name string, mode int) (int, identity, error) {
	fd, err := retryInt(func() (int, error) {
		return unix.Openat(h.fd, name, mode|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	})
	path := filepath.Join(h.path, name)
	switch {
	case errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK):
		return -1, identity{}, &RefusedError{path, "is a symbolic link"}
	case errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.EOPNOTSUPP):
		return -1, identity{}, &RefusedError{path, "is not a regular file"}
	case err != nil:
		return -1, identity{}, pathError("open", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		_ = unix.Close(fd)
		return -1, identity{}, pathError("stat", path, err)
	}
	if err := vet(h, path, &st); err != nil {
		_ = unix.Close(fd)
		return -1, identity{}, err
	}
	return fd, identify(&st), nil
}

func vet(h *folder, path string, st *unix.Stat_t) error {
	mode, uid := uint32(st.Mode), int(st.Uid) //nolint:unconvert // narrower on other systems
	ours := uid == os.Geteuid() || !h.shared && uid == h.uid
	switch {
	case mode&unix.S_IFMT != unix.S_IFREG:
		return &RefusedError{path, "is not a regular file"}
	case st.Nlink > 1:
		return &RefusedError{path, "has more than one hard link"}
	case mode&othersWrite != 0:
		return &RefusedError{path, "may be written by others; chmod o-w"}
	case ours:
		return nil
	case !h.shared:
		return &RefusedError{path, "belongs to somebody else"}
	case mode&0o7777 != 0o660 || int(st.Gid) != h.gid:
		return &RefusedError{path, "belongs to somebody else and is not shared with the directory's group"}
	}
	return nil
}

// sameFile makes sure that the path still names what was opened, and returns its
// size.
func sameFile(h *folder, name string, opened identity) (int64, error) {
	var named unix.Stat_t
	err := unix.Fstatat(h.fd, name, &named, unix.AT_SYMLINK_NOFOLLOW)
	if err != nil && !errors.Is(err, unix.ENOENT) {
		return 0, pathError("stat", filepath.Join(h.path, name), err)
	}
	if err != nil || identify(&named) != opened {
		return 0, errOtherFile
	}
	return named.Size, nil
}

// CorruptSuffix ends the names of copies of damaged files.
const CorruptSuffix = ".corrupt"

// quarantineSize bounds the copy of a damaged file.
const quarantineSize = 64 << 10

// quarantine copies a damaged file aside and returns the path of the copy, "" if
// there could be none. The copy of an earlier damage is overwritten.
func (f File) quarantine(h *folder, fd int) string {
	data := make([]byte, quarantineSize)
	n, err := retryInt(func() (int, error) { return unix.Pread(fd, data, 0) })
	if err != nil {
		return ""
	}
	name := f.Name + CorruptSuffix
	to, _, err := openChecked(h, name, unix.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		to, _, err = createPlain(h, name)
	}
	if err != nil {
		return ""
	}
	defer func() { _ = unix.Close(to) }()
	if f.write(to, data[:n], 0) != nil || unix.Ftruncate(to, int64(n)) != nil {
		return ""
	}
	return f.Path() + CorruptSuffix
}

// createPlain makes an empty file that nobody else has made.
func createPlain(h *folder, name string) (int, identity, error) {
	path := filepath.Join(h.path, name)
	fd, err := retryInt(func() (int, error) {
		return unix.Openat(h.fd, name, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC|lockOnCreate, h.fileMode())
	})
	if err != nil {
		return -1, identity{}, pathError("create", path, err)
	}
	var st unix.Stat_t
	if err := errors.Join(h.hand(fd, path, h.fileMode()), unix.Fstat(fd, &st)); err != nil {
		_ = unix.Close(fd)
		return -1, identity{}, err
	}
	return fd, identify(&st), nil
}

// createLocked makes a file that is empty until its content is written under the
// lock; others who find it empty wait a little for that.
func (f File) createLocked(h *folder, change func(Content) []byte) error {
	if change(Content{}) == nil {
		return nil
	}
	fd, id, err := createPlain(h, f.Name)
	if errors.Is(err, fs.ErrExist) {
		return errOtherFile
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	return f.fill(h, fd, id, change)
}

// fill writes the content of a file that was just made empty, unless somebody
// else has done so.
func (f File) fill(h *folder, fd int, id identity, change func(Content) []byte) error {
	if err := tryLock(fd); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			return errOtherFile // somebody took our file for a damaged one
		}
		return pathError("lock", f.Path(), err)
	}
	defer unlock(fd)
	size, err := sameFile(h, f.Name, id)
	if err != nil {
		return err
	}
	if size != 0 {
		return errOtherFile
	}
	return f.write(fd, fresh(change(Content{})), 0)
}
