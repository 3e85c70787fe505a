package faulttest_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Property 28 in the moment that counts: a file is not there, and when it is made
// somebody has put one there that is a second name of another file. It is not
// written to, be it in the place of a record or of the copy of a damaged one.
func TestNobodySlipsInBeforeAFileIsMade(t *testing.T) {
	ruin := func(dir string) error { return os.WriteFile(recordPath(dir), []byte("rubbish"), 0o600) }
	gone := func(dir string) error { return os.Remove(recordPath(dir)) }
	for _, c := range []struct {
		name    string
		prepare func(dir string) error
		path    func(dir string) string
		named   bool // as in slayer
		kind    string
	}{
		{"record", gone, recordPath, false, "unusable"},
		{"record in two steps", gone, recordPath, true, "unusable"},
		{"copy of a damaged record", ruin, func(dir string) string { return recordPath(dir) + ".corrupt" }, false, "ok"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := stateDir(t)
			victim := filepath.Join(filepath.Dir(dir), "victim")
			w := hire(t, dir)
			stock(t, dir, 10)
			if err := errors.Join(c.prepare(dir), os.WriteFile(victim, []byte("precious"), 0o600)); err != nil {
				t.Fatal(err)
			}
			var slipped error
			tries := 0
			w.let(func(made call) verdict {
				if c.named && made.made {
					return verdict{fail: syscall.EOPNOTSUPP}
				}
				if made.new && made.path == c.path(dir) {
					if tries++; tries == 1 {
						slipped = os.Link(victim, c.path(dir))
					}
				}
				return verdict{}
			})
			r, told := w.do(t, "withdraw")
			if slipped != nil || tries == 0 {
				t.Fatalf("nobody slipped in: %v after %d tries", slipped, tries)
			}
			if !told || r.kind != c.kind || r.granted {
				t.Errorf("it said %+v, want %s and no grant", r, c.kind)
			}
			if data, err := os.ReadFile(victim); string(data) != "precious" || err != nil {
				t.Errorf("the other file has %q, %v, want it untouched", data, err)
			}
		})
	}
}
