package cmd

import (
	"slices"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"
)

// TestID holds our ids to those of a library of ULIDs.
func TestID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := id(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id"))
		if got, want := i.String(), ulid.ULID(i).String(); got != want {
			t.Fatalf("id(%x) = %s, want %s", i[:], got, want)
		}
	})
}

// TestNewID makes ids that say when they were made, and no two alike.
func TestNewID(t *testing.T) {
	before := time.Now().Truncate(time.Millisecond)
	var ids []string
	for range 1000 {
		ids = append(ids, newID())
	}
	after := time.Now()
	for _, text := range ids {
		u, err := ulid.ParseStrict(text)
		if err != nil {
			t.Fatalf("newID() = %s: %v", text, err)
		}
		if at := ulid.Time(u.Time()); at.Before(before) || at.After(after) {
			t.Errorf("newID() = %s of %s, want a time from %s to %s", text, at, before, after)
		}
	}
	slices.Sort(ids)
	if n := len(slices.Compact(ids)); n != 1000 {
		t.Errorf("newID() gave %d ids in 1000 calls, want all different", n)
	}
}
