package classify

import (
	"testing"

	"github.com/retryx/retryx/classify/internal/ruleset"
)

func TestArgumentsMatch(t *testing.T) {
	short := ruleset.File{Values: []string{"-o", "-X", "--out"}, Depth: 2}
	long := ruleset.File{Values: []string{"-var"}, LongDash: true}
	for _, tc := range []struct {
		file *ruleset.File
		argv []string
		when ruleset.When
		want bool
	}{
		{&short, []string{"t", "-abd"}, ruleset.When{Flags: []string{"-d"}}, true},
		{&short, []string{"t", "-aod"}, ruleset.When{Flags: []string{"-d"}}, false},
		{&short, []string{"t", "-ao", "-d"}, ruleset.When{Flags: []string{"-d"}}, false},
		{&short, []string{"t", "-o", "-d"}, ruleset.When{Flags: []string{"-d"}}, false},
		{&short, []string{"t", "--out=-d"}, ruleset.When{Flags: []string{"-d"}}, false},
		{&short, []string{"t", "--", "-d"}, ruleset.When{Flags: []string{"-d"}}, false},
		{&short, []string{"t", "-o"}, ruleset.When{Flags: []string{"-o"}}, true},
		{&short, []string{"t", "-XPOST"}, ruleset.When{Flags: []string{"-X=POST|PUT"}}, true},
		{&short, []string{"t", "-X", "put"}, ruleset.When{Flags: []string{"-X=POST|PUT"}}, true},
		{&short, []string{"t", "-X", "GET"}, ruleset.When{Flags: []string{"-X=POST|PUT"}}, false},
		{&short, []string{"t", "--data-raw", "x"}, ruleset.When{Flags: []string{"--data*"}}, true},
		{&short, []string{"t", "--dry-run"}, ruleset.When{Without: []string{"--dry-run"}}, false},
		{&short, []string{"t", "--wet-run"}, ruleset.When{Without: []string{"--dry-run"}}, true},
		{&long, []string{"t", "-auto-approve"}, ruleset.When{Flags: []string{"-a"}}, false},
		{&long, []string{"t", "-auto-approve"}, ruleset.When{Flags: []string{"-auto-approve"}}, true},
		{&long, []string{"t", "-var", "apply", "plan"}, ruleset.When{Sub: []string{"plan"}}, true},
		{&short, []string{"t", "-o", "get", "put", "x"}, ruleset.When{Sub: []string{"put"}}, true},
		{&short, []string{"t", "s3", "cp", "x"}, ruleset.When{Sub: []string{"s3 cp"}}, true},
		{&short, []string{"t", "s3"}, ruleset.When{Sub: []string{"s3 cp"}}, false},
		{&short, []string{"t", "ec2", "describe-x"}, ruleset.When{Sub: []string{"* describe-*"}}, true},
		{&short, []string{"t", "-e", "Insert INTO t"}, ruleset.When{Words: []string{"insert"}}, true},
		{&short, []string{"t", "-e", "select inserted"}, ruleset.When{Words: []string{"insert"}}, false},
		{&short, []string{"t", "put", "-d"}, ruleset.When{Sub: []string{"put"}, Flags: []string{"-x"}}, false},
		{&short, []string{"t"}, ruleset.When{}, true},
	} {
		a := parseArguments(tc.file, tc.argv)
		if got, _ := a.match(&tc.when); got != tc.want {
			t.Errorf("match(%q, %+v) = %t, want %t", tc.argv, tc.when, got, tc.want)
		}
	}
}

func TestGlob(t *testing.T) {
	for _, tc := range []struct {
		pattern, s string
		want       bool
	}{
		{"a", "a", true},
		{"a", "ab", false},
		{"a*", "ab", true},
		{"*b", "ab", true},
		{"*-get-*", "x-get-y", true},
		{"*-get-*", "x-got-y", false},
		{"*", "", true},
		{"a*b*c", "a1b2c", true},
		{"a*b*c", "a1c2b", false},
	} {
		if got := glob(tc.pattern, tc.s); got != tc.want {
			t.Errorf("glob(%q, %q) = %t, want %t", tc.pattern, tc.s, got, tc.want)
		}
	}
}
