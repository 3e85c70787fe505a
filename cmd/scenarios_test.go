package cmd_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestScenarios holds docs/scenarios.md to the tree: all 93 are there, in order,
// each with at least one test, and whatever it names exists.
func TestScenarios(t *testing.T) {
	t.Parallel()
	const scenarios = 93
	text, err := os.ReadFile("../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	tests := testNames(t)
	row := regexp.MustCompile(`^\| (\d+) \| (.+) \| (.+) \|$`)
	seen := 0
	for line := range strings.Lines(string(text)) {
		m := row.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			mentioned(t, "the text", line, tests)
			continue
		}
		seen++
		if want := strconv.Itoa(seen); m[1] != want {
			t.Fatalf("row %s stands where %s belongs", m[1], want)
		}
		if mentioned(t, "scenario "+m[1], m[3], tests) == 0 {
			t.Errorf("scenario %s names no test", m[1])
		}
	}
	if seen != scenarios {
		t.Errorf("%d scenarios are listed, want %d", seen, scenarios)
	}
}

// mentioned checks the tests, scripts and files that a text names between
// backquotes, and returns how many tests and scripts there are.
func mentioned(t *testing.T, where, text string, tests map[string]bool) int {
	t.Helper()
	count := 0
	for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(text, -1) {
		name := m[1]
		var file string
		switch {
		case regexp.MustCompile(`^(Test|Fuzz|Benchmark)\w+$`).MatchString(name):
			count++
			if !tests[name] {
				t.Errorf("%s names %s, and there is no such test", where, name)
			}
			continue
		case strings.HasSuffix(name, ".txtar") && name != ".txtar":
			count++
			file = "testdata/script/" + name
		case regexp.MustCompile(`^(docs|bench|cmd)/`).MatchString(name):
			file = "../" + name
		default:
			continue
		}
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s names %s: %v", where, name, err)
		}
	}
	return count
}

// testNames are all the tests of the module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)\(`)
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
