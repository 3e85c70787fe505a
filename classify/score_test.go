package classify

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// labeled is a failure with the judgement of an experienced operator.
type labeled struct {
	question
	Class      Class   `json:"class"`
	Also       []Class `json:"also"`
	RetryAfter float64 `json:"retry_after_s"`
}

// score counts how often the engine did as the operator would.
type score struct{ all, action, harm, waits int }

func (s *score) percent(n int) float64 { return 100 * float64(n) / float64(max(s.all, 1)) }

// TestScores holds the rules to what the labeled sets measure: action is the
// share of failures on which the engine does what an operator would, harm the
// share that it would retry although it must stop or check. Set by set, so that
// what helps one cannot hide what hurts another. Only failures of tuning.jsonl
// and field.jsonl are named: heldout.jsonl measures.
func TestScores(t *testing.T) {
	const leastAction, mostHarm = 95, 2
	tab := rulesOnDisk(t)
	for _, set := range []struct {
		file  string
		shown bool
	}{{"heldout.jsonl", false}, {"tuning.jsonl", true}, {"field.jsonl", true}, {"sight.jsonl", true}, {"runs.jsonl", true}} {
		t.Run(set.file, func(t *testing.T) {
			var s score
			for _, row := range readLabeled(t, set.file) {
				if fault := s.judge(t, tab, &row); fault != "" && set.shown {
					t.Logf("%s: %s", row.ID, fault)
				}
			}
			action, harm := s.percent(s.action), s.percent(s.harm)
			t.Logf("%d failures: action %.1f %%, harm %.1f %%", s.all, action, harm)
			if action < leastAction || harm > mostHarm || s.waits > 0 {
				t.Errorf("%s: action %.1f %%, harm %.1f %%, %d stated waits missed; want at least %d %%, at most %d %%, none",
					set.file, action, harm, s.waits, leastAction, mostHarm)
			}
		})
	}
}

// TestMended judges failures that were once judged wrongly, and their
// neighbours: here each one counts.
func TestMended(t *testing.T) {
	tab := rulesOnDisk(t)
	for _, row := range readLabeled(t, "mended.jsonl") {
		a, err := row.attempt()
		if err != nil {
			t.Fatalf("%s: %v", row.ID, err)
		}
		v := New(tab.read(a.Argv), Options{}).Classify(a)
		if v.Class != row.Class && !slices.Contains(row.Also, v.Class) {
			t.Errorf("%s: %s by %q, want %s", row.ID, v.Class, v.Rule, row.Class)
		}
	}
}

// judge counts one failure and says what is wrong about the answer.
func (s *score) judge(t *testing.T, tab *tables, row *labeled) string {
	t.Helper()
	a, err := row.attempt()
	if err != nil {
		t.Fatalf("%s: %v", row.ID, err)
	}
	v := New(tab.read(a.Argv), Options{}).Classify(a)
	accepted := []string{row.Class.Action()}
	for _, c := range row.Also {
		accepted = append(accepted, c.Action())
	}
	s.all++
	const exact = 0.001 // seconds
	if row.RetryAfter > 0 && math.Abs(v.RetryAfter.Seconds()-row.RetryAfter) > exact {
		s.waits++
	}
	did := v.Class.Action()
	if slices.Contains(accepted, did) {
		s.action++
		return ""
	}
	if did == "retry" {
		s.harm++
	}
	return did + " by " + v.Rule + ", want " + accepted[0]
}

func readLabeled(t *testing.T, name string) []labeled {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	var rows []labeled
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var row labeled
		if err := json.Unmarshal(lines.Bytes(), &row); err != nil {
			t.Fatalf("%s, line %d: %v", name, len(rows)+1, err)
		}
		rows = append(rows, row)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	const fewest = 200 // a set that shrank measures nothing
	if len(rows) < fewest {
		t.Fatalf("%s has %d failures, want at least %d", name, len(rows), fewest)
	}
	return rows
}
