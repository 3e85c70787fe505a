package budget_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The list of promises names each of them once, in order, and no test that is not
// there.
func TestEveryPromiseHasItsTests(t *testing.T) {
	const promises = 64
	page, err := os.ReadFile("../docs/properties.md")
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`(?m)^\| (\d+) \| .+ \| (.+) \|$`)
	rows := row.FindAllStringSubmatch(string(page), -1)
	if len(rows) != promises {
		t.Errorf("the page has %d promises, want %d", len(rows), promises)
	}
	functions := map[string]string{}
	for i, r := range rows {
		if want := strconv.Itoa(i + 1); r[1] != want {
			t.Errorf("row %s comes where %s should", r[1], want)
		}
		for place := range strings.SplitSeq(r[2], "; ") {
			dir, names, _ := strings.Cut(place, ": ")
			for name := range strings.SplitSeq(names, ", ") {
				checkNamed(t, functions, dir, name)
			}
		}
	}
}

// checkNamed looks for a test, benchmark or script; functions remembers the text
// of each directory's tests.
func checkNamed(t *testing.T, functions map[string]string, dir, name string) {
	t.Helper()
	name, script, scripted := strings.Cut(name, "/")
	if _, read := functions[dir]; !read {
		functions[dir] = testsIn(t, filepath.Join("..", dir))
	}
	if !strings.Contains(functions[dir], "\nfunc "+name+"(") {
		t.Errorf("no test %s in %s", name, dir)
	}
	if _, err := os.Stat(filepath.Join("..", dir, "testdata", "script", script+".txtar")); scripted && err != nil {
		t.Errorf("no script of %s: %v", name, err)
	}
}

// testsIn returns the text of all tests of a directory.
func testsIn(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}
