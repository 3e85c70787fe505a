package cmd

// How budgets are shown: the same numbers as words and as JSON.

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/retryx/retryx/budget"
)

const (
	budgetSchema  = "retryx.budget/v1"
	budgetsSchema = "retryx.budgets/v1"
)

// format is the --format flag of a command that answers.
type format struct {
	text    string
	choices []string
}

// addFormat defines --format; the first choice is the default.
func addFormat(c *cobra.Command, choices ...string) *format {
	f := &format{choices: choices}
	c.Flags().StringVar(&f.text, "format", choices[0], "`how` to answer: "+orList(choices))
	_ = c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
	return f
}

func (f *format) problems() []string {
	if err := checkChoice(f.text, f.choices); err != nil {
		return []string{"--format: " + err.Error()}
	}
	return nil
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// row is one line of an answer for people: what, and how it is. A row without a
// name goes on with the one above.
type row struct{ name, text string }

func printRows(w io.Writer, rows []row) error {
	width := 0
	for _, r := range rows {
		width = max(width, len(r.name))
	}
	var b strings.Builder
	for _, r := range rows {
		fmt.Fprintf(&b, "%-*s  %s\n", width, r.name, r.text)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// shownAccount is the JSON of one budget.
type shownAccount struct {
	Schema   string  `json:"schema,omitempty"`
	Name     string  `json:"name"`
	Store    string  `json:"store"`
	Place    string  `json:"place"`
	Exists   bool    `json:"exists"` // it has a record; without one it is full
	Error    *string `json:"error"`  // why the record could not be read, or what is wrong with it
	Tokens   float64 `json:"tokens"`
	Capacity int     `json:"capacity"`
	Refill   string  `json:"refill"`
	PerHour  float64 `json:"refill_per_hour"`
	Bonus    float64 `json:"bonus"`

	NextTokenMS *int64        `json:"next_token_ms"` // null: time alone never brings one
	FullMS      *int64        `json:"full_ms"`       // null: time alone never fills it
	Bound       string        `json:"bound"`
	Counters    shownCounters `json:"counters"`
	Breaker     shownBreaker  `json:"breaker"`
}

type shownCounters struct {
	Granted   uint64 `json:"granted"`
	Denied    uint64 `json:"denied"`
	Refunded  uint64 `json:"refunded"`
	Successes uint64 `json:"successes"`
	Resets    uint64 `json:"resets"`
	Anomalies uint64 `json:"anomalies"`
}

type shownBreaker struct {
	State    string `json:"state"`
	Failures int    `json:"failures"`
	RetryMS  int64  `json:"retry_ms"`
}

type shownAccounts struct {
	Schema  string         `json:"schema"`
	Store   string         `json:"store"`
	Budgets []shownAccount `json:"budgets"`
}

func (b *bank) document(accounts []account) shownAccounts {
	doc := shownAccounts{Schema: budgetsSchema, Store: b.store.Kind(), Budgets: []shownAccount{}}
	for _, a := range accounts {
		doc.Budgets = append(doc.Budgets, a.document())
	}
	return doc
}

func (a account) document() shownAccount {
	p, c, k := a.record.Bucket.Params, a.record.Counters, a.record.BreakerView()
	doc := shownAccount{
		Name: a.name, Store: a.kind, Place: a.place, Exists: a.found,
		Tokens: a.record.Bucket.Tokens.Tokens(), Capacity: p.Capacity, Bound: boundOf(p),
		Refill: p.Refill.String(), PerHour: budget.Micro(p.Refill).Tokens(), Bonus: p.Bonus.Tokens(),
		Counters: shownCounters{c.Granted, c.Denied, c.Refunded, c.Deposits, c.Resets, c.Anomalies},
		Breaker:  shownBreaker{State: k.State.String(), Failures: k.Failures, RetryMS: ceilMS(k.Retry)},
	}
	if a.err != nil {
		doc.Error = filled(a.err.Error())
	}
	if next := a.record.Bucket.Next(); next >= 0 {
		doc.NextTokenMS = new(ceilMS(next))
	}
	if full := a.record.Bucket.UntilFull(); full != math.MaxInt64 {
		doc.FullMS = new(ceilMS(full))
	}
	return doc
}

// printTable aligns the columns of a table whose first line is its head. Whatever
// a cell holds, it stays in its line and column and does nothing to the terminal.
func printTable(w io.Writer, lines [][]string) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, cells := range lines {
		for i, c := range cells {
			cells[i] = oneLine(printable(c))
		}
		if _, err := io.WriteString(tab, strings.Join(cells, "\t")+"\n"); err != nil {
			return err
		}
	}
	return tab.Flush()
}

func (b *bank) printTable(w io.Writer, accounts []account) error {
	if len(accounts) == 0 {
		_, err := fmt.Fprintf(w, "no budgets yet in %s; a budget is made by the first retry that it pays for\n", b.place(""))
		return err
	}
	lines := [][]string{{"NAME", "TOKENS", "REFILL", "BONUS", "GRANTED", "DENIED", "BREAKER", "NOTE"}}
	for _, a := range accounts {
		if a.unreadable() {
			lines = append(lines, []string{a.name, "-", "-", "-", "-", "-", "-", a.note()})
			continue
		}
		p, c := a.record.Bucket.Params, a.record.Counters
		lines = append(lines, []string{
			a.name, a.holds(), p.Refill.String(), p.Bonus.String(),
			strconv.FormatUint(c.Granted, 10), strconv.FormatUint(c.Denied, 10), a.record.Breaker.State.String(), a.note(),
		})
	}
	return printTable(w, lines)
}

func (a account) note() string {
	switch {
	case a.err != nil:
		return oneLine(printable(a.err.Error()))
	case !a.found:
		return "no record yet"
	}
	return "-"
}

// holds is the balance: "12.3 of 20".
func (a account) holds() string {
	b := a.record.Bucket
	return fmt.Sprintf("%s of %d", shortNumber(b.Tokens.Tokens()), b.Params.Capacity)
}

func (a account) rows() []row {
	c := a.record.Counters
	rows := append([]row{{"budget", a.name}}, a.parameterRows()...)
	rows = append(rows, row{"counters", fmt.Sprintf("%d granted, %d denied, %d refunded, %d successes", c.Granted, c.Denied, c.Refunded, c.Deposits)})
	if c.Resets > 0 || c.Anomalies > 0 {
		rows = append(rows, row{"", fmt.Sprintf("%d times restarted after damage, %d impossible times", c.Resets, c.Anomalies)})
	}
	rows = append(rows, row{"breaker", breakerWords(a.record.BreakerView())}, row{"record", a.place})
	switch {
	case a.err != nil:
		rows = append(rows, row{"", a.err.Error()})
	case !a.found:
		rows = append(rows, row{"", "not made yet, as nothing was paid from it"})
	}
	return rows
}

func (a account) parameterRows() []row {
	b := a.record.Bucket
	return []row{
		{"tokens", a.holds()},
		{"next", nextWords(b.Next())},
		{"full", fullWords(b.UntilFull())},
		{"refill", refillWords(b.Params.Refill)},
		{"bonus", bonusWords(b.Params.Bonus)},
		{"bound", boundOf(b.Params)},
	}
}

func nextWords(d time.Duration) string {
	switch {
	case d < 0:
		return "time alone never brings a token"
	case d == 0:
		return "a retry can be paid now"
	}
	return "a whole token in " + shortDuration(d)
}

func fullWords(d time.Duration) string {
	if d == 0 {
		return "now"
	}
	if d == math.MaxInt64 {
		return "time alone never fills it"
	}
	return "in " + shortDuration(d)
}

func refillWords(r budget.Rate) string {
	if r == 0 {
		return "none"
	}
	each := time.Duration(float64(time.Hour) * float64(budget.Token) / float64(r))
	return fmt.Sprintf("%s, a token every %s", r, shortDuration(each))
}

func bonusWords(b budget.Micro) string {
	if b == 0 {
		return "none"
	}
	return fmt.Sprintf("%s, that is %s", b, perSuccess(b))
}

func breakerWords(v budget.BreakerView) string {
	text := v.State.String()
	switch {
	case v.State == budget.BreakerIsOpen && v.Retry > 0:
		text = "open for another " + shortDuration(v.Retry)
	case v.State == budget.BreakerIsOpen:
		text = "open, ready for a probe"
	case v.State == budget.BreakerHalfOpen && v.Retry > 0:
		text = "half open, a probe is under way"
	case v.State == budget.BreakerHalfOpen:
		text = "half open, ready for a probe"
	}
	return fmt.Sprintf("%s; failures in a row: %d", text, v.Failures)
}

// boundOf says in plain words what the parameters allow all invocations
// together: over any time at most capacity + refill x time + bonus x successes
// retries, less those refunded.
func boundOf(p budget.Params) string {
	if p.Capacity == 0 {
		return "no retry at all, as its capacity is 0"
	}
	text := "until it is reset, at most " + retries(p.Capacity)
	if p.Refill > 0 {
		text = fmt.Sprintf("in any hour, at most %d + %s retries", p.Capacity, budget.Micro(p.Refill))
	}
	if p.Bonus > 0 {
		text += ", plus " + perSuccess(p.Bonus)
	}
	return text
}

// retries counts them in words.
func retries(n int) string {
	if n == 1 {
		return "1 retry"
	}
	return strconv.Itoa(n) + " retries"
}

// perSuccess says what a bonus allows: "one per ten successful runs".
func perSuccess(b budget.Micro) string {
	if b <= 0 || budget.Token%b != 0 {
		return b.String() + " per successful run"
	}
	n := int64(budget.Token / b)
	if n == 1 {
		return "one per successful run"
	}
	words := [...]string{2: "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
	if n < int64(len(words)) {
		return fmt.Sprintf("one per %s successful runs", words[n])
	}
	return fmt.Sprintf("one per %d successful runs", n)
}
