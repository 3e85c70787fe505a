package statefile_test

import (
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/retryx/retryx/statefile"
)

// Properties 25 and 29: a place that can never work is told from one that failed
// this time; the first leaves a whole private bucket, the second one token.
func TestUnusable(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.EACCES: true, syscall.EPERM: true, syscall.EROFS: true, syscall.ENOENT: true, syscall.ENOTDIR: true,
		syscall.ELOOP: true, syscall.ENOSYS: true, syscall.ENOLCK: true, syscall.EOPNOTSUPP: true, syscall.ENAMETOOLONG: true,
		statefile.ErrNewer: true, statefile.ErrNoHome: true, &statefile.RefusedError{Path: "p", Reason: "r"}: true,
		syscall.ENOSPC: false, syscall.EIO: false, syscall.EMFILE: false, syscall.ENFILE: false, syscall.EDQUOT: false,
		syscall.ENOMEM: false, statefile.ErrBusy: false, statefile.ErrReplaced: false,
	} {
		wrapped := fmt.Errorf("open: %w", &fs.PathError{Op: "open", Path: "p", Err: err})
		if got := statefile.Unusable(wrapped); got != want {
			t.Errorf("Unusable(%v) = %v, want %v", wrapped, got, want)
		}
	}
}
