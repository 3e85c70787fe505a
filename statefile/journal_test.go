package statefile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retryx/retryx/statefile"
)

func journal(t *testing.T) statefile.Journal {
	t.Helper()
	return statefile.Journal{Dir: file(t).Dir, Name: "outcomes.jsonl"}
}

func lines(t *testing.T, j statefile.Journal) string {
	t.Helper()
	var all []string
	if err := j.Each(func(line []byte) bool { all = append(all, string(line)); return true }); err != nil {
		t.Fatalf("Each() = %v, want nil", err)
	}
	return strings.Join(all, " ")
}

func appendLine(t *testing.T, j statefile.Journal, line string) {
	t.Helper()
	if err := j.Append(t.Context(), time.Second, []byte(line)); err != nil {
		t.Fatalf("Append(%s) = %v, want nil", line, err)
	}
}

func TestJournalAppends(t *testing.T) {
	j := journal(t)
	if got := lines(t, j); got != "" {
		t.Errorf("lines of nothing = %q, want none", got)
	}
	appendLine(t, j, "1")
	appendLine(t, j, "2")
	if got := lines(t, j); got != "1 2" {
		t.Errorf("lines = %q, want 1 2", got)
	}
	if err := j.Append(t.Context(), 0, []byte("3\n4")); err == nil {
		t.Error("Append() of two lines = nil, want an error")
	}
	var first []byte
	if err := j.Each(func(line []byte) bool { first = append(first, line...); return false }); err != nil || string(first) != "1" {
		t.Errorf("Each() stopped at the first = %q, %v, want 1", first, err)
	}
}

// A torn line ends where it ends: the next one is whole, readers see the others.
func TestJournalTornLine(t *testing.T) {
	j := journal(t)
	appendLine(t, j, `{"a":1}`)
	torn, err := os.OpenFile(j.Path(), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = torn.WriteString(`{"b":`)
	_ = torn.Close()
	if got, want := lines(t, j), `{"a":1}`; got != want {
		t.Errorf("lines before the repair = %s, want %s", got, want)
	}
	appendLine(t, j, `{"c":3}`)
	if got, want := lines(t, j), `{"a":1} {"c":3}`; got != want {
		t.Errorf("lines = %s, want %s", got, want)
	}
	data, _ := os.ReadFile(j.Path())
	if want := "{\"a\":1}\n{\"b\":\n{\"c\":3}\n"; string(data) != want {
		t.Errorf("the file is %q, want %q", data, want)
	}
}

func TestJournalRotates(t *testing.T) {
	j := journal(t)
	j.Limit = 10
	for _, line := range []string{"100", "200", "300", "400", "500"} {
		appendLine(t, j, line)
	}
	if got, want := lines(t, j), "300 400 500"; got != want {
		t.Errorf("lines = %q, want %q: one older file is kept", got, want)
	}
	var since []string
	err := j.EachSinceRotation(func(line []byte) bool { since = append(since, string(line)); return true })
	if got, want := strings.Join(since, " "), "500"; err != nil || got != want {
		t.Errorf("EachSinceRotation() = %q, %v, want %q", got, err, want)
	}
	appendLine(t, j, strings.Repeat("9", 50))
	if got, want := lines(t, j), "500 "+strings.Repeat("9", 50); got != want {
		t.Errorf("lines = %q, want %q: a line that is too long for any file has one of its own", got, want)
	}
}

// A journal may be no link, and is refused like a record.
func TestJournalRefusesLinks(t *testing.T) {
	j := journal(t)
	if err := errors.Join(os.Mkdir(j.Dir.Path, 0o700), os.Symlink("/dev/null", j.Path())); err != nil {
		t.Fatal(err)
	}
	if err := j.Append(t.Context(), 0, []byte("1")); !statefile.Unusable(err) {
		t.Errorf("Append() = %v, want it unusable", err)
	}
	if err := j.Each(func([]byte) bool { return true }); !statefile.Unusable(err) {
		t.Errorf("Each() = %v, want it unusable", err)
	}
}

// Writers that append at once, across rotations, tear and lose no line.
func TestJournalManyWriters(t *testing.T) {
	j := journal(t)
	const writers, each = 8, 50
	j.Limit = writers * each * 16 * 6 / 10 // rotates once
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				line := fmt.Sprintf(`{"w":%d,"i":%3d}`, w, i)
				if err := j.Append(t.Context(), 10*time.Second, []byte(line)); err != nil {
					t.Errorf("Append() = %v, want nil", err)
				}
			}
		})
	}
	all.Wait()
	seen, last := 0, map[int]int{}
	err := j.Each(func(line []byte) bool {
		var got struct{ W, I int }
		if err := json.Unmarshal(line, &got); err != nil {
			t.Errorf("line %q: %v", line, err)
		}
		if previous, ok := last[got.W]; ok && got.I != previous+1 {
			t.Errorf("writer %d: line %d follows %d", got.W, got.I, previous)
		}
		last[got.W] = got.I
		seen++
		return true
	})
	if err != nil || seen != writers*each {
		t.Errorf("Each() saw %d lines, %v, want %d", seen, err, writers*each)
	}
	if _, err := os.Stat(j.Path() + ".1"); err != nil {
		t.Errorf("the journal was not rotated: %v", err)
	}
}

// Lines longer than any buffer are read; those beyond all reason are skipped.
func TestEachLineOfAnyLength(t *testing.T) {
	long := `"` + strings.Repeat("x", 1<<20) + `"`
	absurd := `"` + strings.Repeat("y", 5<<20) + `"`
	var got []int
	err := statefile.EachLine(strings.NewReader(long+"\n"+absurd+"\n1\n\n \n2"), func(line []byte) bool {
		got = append(got, len(line))
		return true
	})
	if want := []int{len(long), 1, 1}; err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("EachLine() saw lengths %v, %v, want %v", got, err, want)
	}
}

// Any bytes: readers see exactly the lines that are whole JSON.
func FuzzEachLine(f *testing.F) {
	f.Add([]byte("{}\n{\n1"))
	f.Add([]byte("\x00\n\r\n[1]\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var got, want []string
		if err := statefile.EachLine(bytes.NewReader(data), func(line []byte) bool {
			got = append(got, string(line))
			return true
		}); err != nil {
			t.Fatalf("EachLine() = %v, want nil", err)
		}
		for line := range bytes.SplitSeq(data, []byte("\n")) {
			if line = bytes.TrimSpace(line); json.Valid(line) {
				want = append(want, string(line))
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("EachLine(%q) saw %q, want %q", data, got, want)
		}
	})
}
