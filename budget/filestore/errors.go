package filestore

import (
	"errors"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/statefile"
)

// errDamaged is what Peek says of a record that the next decision will restart.
var errDamaged = errors.New("record is damaged; the next decision restarts it at 0 tokens")

// wrap marks what cannot be used at all.
func wrap(err error) error {
	if statefile.Unusable(err) {
		return budget.MarkUnusable(err)
	}
	return err
}
