package cmd

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// declaredReasons are the texts of the constants of type Reason in a file.
func declaredReasons(t *testing.T, file string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if name, ok := v.Type.(*ast.Ident); ok && name.Name == "Reason" {
			if lit, ok := v.Values[0].(*ast.BasicLit); ok {
				texts = append(texts, strings.Trim(lit.Value, `"`))
			}
		}
		return true
	})
	return texts
}

// Every reason that can be given is known to completions and explained.
func TestReasonsAreExplained(t *testing.T) {
	page, err := os.ReadFile("../docs/outcome.md")
	if err != nil {
		t.Fatal(err)
	}
	declared := declaredReasons(t, "../exec/outcome.go")
	if len(declared) < 19 {
		t.Fatalf("found the reasons %q, want all", declared)
	}
	all := slices.Concat(declared, classNames())
	if diff := cmp.Diff(slices.Sorted(slices.Values(all)), slices.Sorted(slices.Values(knownReasons()))); diff != "" {
		t.Errorf("knownReasons differ (-declared +known):\n%s", diff)
	}
	rows := regexp.MustCompile("(?m)^\\| (`[a-z_`, ]+`) \\| ([a-z_]+) \\| ").FindAllStringSubmatch(string(page), -1)
	explained := map[string]string{}
	for _, row := range rows {
		for name := range strings.SplitSeq(row[1], ", ") {
			explained[strings.Trim(name, "`")] = row[2]
		}
	}
	for _, reason := range all {
		if !slices.Contains(labels(), explained[reason]) {
			t.Errorf("docs/outcome.md says of %s that it is a %q, want an outcome", reason, explained[reason])
		}
	}
}

// Every field of an outcome is explained, those of its parts included.
func TestFieldsAreExplained(t *testing.T) {
	page, err := os.ReadFile("../docs/outcome.md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(outcomeSchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Required []string
		Defs     map[string]struct{ Required []string } `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(schema.Required, schema.Defs["attempt"].Required, schema.Defs["budget"].Required) {
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("docs/outcome.md has no `%s`", name)
		}
	}
}
