package statefile_test

import (
	"testing"
	"time"

	"github.com/retryx/retryx/statefile"
)

// Two processes of one boot agree on the domain, and time passes.
func TestClock(t *testing.T) {
	var one, other statefile.Clock
	a, b := one.Now(), other.Now()
	if a.Domain == 0 || a.Domain != b.Domain {
		t.Errorf("domains = %d and %d, want one that is not zero", a.Domain, b.Domain)
	}
	if a.Boot <= 0 || b.Boot < a.Boot {
		t.Errorf("boot times = %d, then %d, want them to grow", a.Boot, b.Boot)
	}
	if d := time.Duration(time.Now().UnixNano() - a.Wall); d < 0 || d > time.Hour {
		t.Errorf("wall time is %v behind, want about now", d)
	}
}
