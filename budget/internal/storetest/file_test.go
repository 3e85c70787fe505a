package storetest_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/budget/filestore"
	"github.com/retryx/retryx/budget/internal/storetest"
	"github.com/retryx/retryx/statefile"
)

// The file store is the first that is held to the suite: what passes here and
// nowhere else is wrong elsewhere.
func TestFileStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Bench {
		t.Helper()
		var now statefile.Stamp
		s := &filestore.Store{
			Dir: statefile.Dir{Path: filepath.Join(t.TempDir(), "state")},
			Now: func() statefile.Stamp { return now },
		}
		return storetest.Bench{Store: s, Set: func(us int64) {
			now = statefile.Stamp{Domain: 1, Boot: us * 1000, Wall: us * 1000}
		}}
	})
}

func TestFileStoreCrowd(t *testing.T) {
	dir := statefile.Dir{Path: filepath.Join(t.TempDir(), "state")}
	clients := make([]budget.Store, 20)
	for i := range clients {
		clients[i] = &filestore.Store{Dir: dir}
	}
	storetest.Crowd(t, clients, func(err error) bool { return errors.Is(err, statefile.ErrBusy) })
}
