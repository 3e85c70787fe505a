package statefile

import (
	"errors"
	"io/fs"
	"syscall"
)

// Errors that callers branch on.
var (
	// ErrBusy means that other processes held the lock for the whole wait.
	ErrBusy = errors.New("locked by other processes for too long")
	// ErrNewer means that a newer version wrote the file; it is left untouched.
	ErrNewer = errors.New("written by a newer version of retryx; left untouched")
	// ErrReplaced means that the file was replaced again and again meanwhile.
	ErrReplaced = errors.New("replaced by somebody again and again")
	// ErrNoHome means that no state directory can be named for the user.
	ErrNoHome = errors.New("no home directory of the user's own; name one with --state-dir")
)

// A RefusedError says why something at a path is not used.
type RefusedError struct {
	Path   string
	Reason string
}

// Error returns the path and the reason.
func (e *RefusedError) Error() string { return e.Path + ": " + e.Reason }

// Unusable reports whether err means that the place cannot be used at all (no
// home, no permission, read-only, refused), rather than that it failed in use
// (locked for too long, disk full, out of descriptors, I/O error).
func Unusable(err error) bool {
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return true
	}
	for _, target := range []error{
		ErrNewer, ErrNoHome, fs.ErrPermission, fs.ErrNotExist,
		syscall.EROFS, syscall.ENOTDIR, syscall.ELOOP, syscall.ENAMETOOLONG,
		syscall.ENOSYS, syscall.ENOLCK, syscall.EOPNOTSUPP,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// pathError keeps the name of the file with the error.
func pathError(op, path string, err error) error {
	return &fs.PathError{Op: op, Path: path, Err: err}
}
