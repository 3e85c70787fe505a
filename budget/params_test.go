package budget_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/retryx/retryx/budget"
)

func TestParseRefill(t *testing.T) {
	good := map[string]struct {
		perHour budget.Rate
		text    string
	}{
		"0":             {0, "0/s"},
		"0/s":           {0, "0/s"},
		"0.1/s":         {360_000_000, "0.1/s"},
		"6/m":           {360_000_000, "0.1/s"},
		"360/h":         {360_000_000, "0.1/s"},
		"10/h":          {10_000_000, "10/h"},
		"1/m":           {60_000_000, "1/m"},
		"0.000001/h":    {1, "0.000001/h"},
		"0.000001/m":    {60, "0.000001/m"},
		"0.000001/s":    {3600, "0.000001/s"},
		"1000/s":        {budget.MaxRefill, "1000/s"},
		"3600000/h":     {budget.MaxRefill, "1000/s"},
		"999.999999/s":  {budget.MaxRefill - 3600, "999.999999/s"},
		"007.500/s":     {27_000_000_000, "7.5/s"},
		"60000.0/m":     {budget.MaxRefill, "1000/s"},
		"3599999.999/h": {3_599_999_999_000, "3599999.999/h"},
	}
	for in, want := range good {
		got, err := budget.ParseRefill(in)
		if err != nil || got != want.perHour || got.String() != want.text {
			t.Errorf("ParseRefill(%q) = %d (%s), %v, want %d (%s)", in, got, got, err, want.perHour, want.text)
		}
	}
	for _, in := range []string{
		"", "1", "/s", "1/", "1/d", "1/S", "-1/s", "+1/s", ".5/s", "5./s", "1e3/s", "0x1/s", "0.0000001/s",
		"1000.000001/s", "3600001/h", "99999999999999999999/s", " 1/s", "1/s ", "1 /s", "1/s/s", "NaN/s", "1,5/s", "١/s",
	} {
		if got, err := budget.ParseRefill(in); err == nil {
			t.Errorf("ParseRefill(%q) = %s, want an error", in, got)
		}
	}
}

// Whatever a rate is, writing it and reading it back changes nothing.
func TestRateRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rates().Draw(t, "rate")
		if got, err := budget.ParseRefill(r.String()); err != nil || got != r {
			t.Fatalf("ParseRefill(%q) = %d, %v, want %d", r, got, err, r)
		}
	})
}

func TestParseCapacity(t *testing.T) {
	for in, want := range map[string]int{"0": 0, "1": 1, "020": 20, "1000000": budget.MaxCapacity} {
		if got, err := budget.ParseCapacity(in); err != nil || got != want {
			t.Errorf("ParseCapacity(%q) = %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "-1", "+1", "1.0", "1000001", "1e3", "99999999999999999999", "a", " 1"} {
		if got, err := budget.ParseCapacity(in); err == nil {
			t.Errorf("ParseCapacity(%q) = %d, want an error", in, got)
		}
	}
}

func TestParseBonus(t *testing.T) {
	for in, want := range map[string]budget.Micro{"0": 0, "0.1": 100_000, "0.000001": 1, "1": budget.Token, "1.000000": budget.Token} {
		if got, err := budget.ParseBonus(in); err != nil || got != want {
			t.Errorf("ParseBonus(%q) = %d, %v, want %d", in, got, err, want)
		}
	}
	for _, in := range []string{"", "-0.1", "1.000001", "2", "0.0000001", ".1", "1.", "x"} {
		if got, err := budget.ParseBonus(in); err == nil {
			t.Errorf("ParseBonus(%q) = %d, want an error", in, got)
		}
	}
}

func TestParamsValidate(t *testing.T) {
	if err := budget.Defaults().Validate(); err != nil {
		t.Errorf("Validate(%+v) = %v, want nil", budget.Defaults(), err)
	}
	bad := budget.Params{Capacity: -1, Refill: budget.MaxRefill + 1, Bonus: budget.MaxBonus + 1}
	err := bad.Validate()
	if err == nil {
		t.Fatalf("Validate(%+v) = nil, want every problem", bad)
	}
	for _, word := range []string{"capacity", "refill", "bonus"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("Validate(%+v) = %q, does not name %s", bad, err, word)
		}
	}
}

func TestParseName(t *testing.T) {
	for _, in := range []string{"a", "0", "curl", "deploy.sh", "a-b_c.d", strings.Repeat("x", 64), "corrupt"} {
		if got, err := budget.ParseName(in); err != nil || got != in {
			t.Errorf("ParseName(%q) = %q, %v, want it back", in, got, err)
		}
	}
	for _, in := range []string{
		"", ".", "..", ".a", "-a", "_a", "A", "a/b", "a b", "a\x00", "ä", "a:b", strings.Repeat("x", 65), "curl.corrupt", "a\n",
	} {
		if got, err := budget.ParseName(in); err == nil {
			t.Errorf("ParseName(%q) = %q, want an error", in, got)
		}
	}
}

func TestNameFor(t *testing.T) {
	for in, want := range map[string]string{
		"curl":                  "curl",
		"deploy.sh":             "deploy.sh",
		"Deploy Prod.SH":        "deploy-prod.sh",
		".hidden":               "hidden",
		"__x":                   "x",
		"[":                     "command",
		"":                      "command",
		"...":                   "command",
		"c++":                   "c--",
		"grün":                  "gr-n",
		"x.corrupt":             "x-corrupt",
		strings.Repeat("y", 80): strings.Repeat("y", 64),
	} {
		if got := budget.NameFor(in); got != want {
			t.Errorf("NameFor(%q) = %q, want %q", in, got, want)
		}
	}
}

// Whatever a tool is called, its name fits; a name that fits stays.
func TestNameForFits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.String().Draw(t, "tool")
		got := budget.NameFor(in)
		if _, err := budget.ParseName(got); err != nil {
			t.Fatalf("NameFor(%q) = %q, which is no name: %v", in, got, err)
		}
		if again := budget.NameFor(got); again != got {
			t.Fatalf("NameFor(%q) = %q, want it unchanged", got, again)
		}
	})
}
