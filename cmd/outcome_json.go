package cmd

// How a document becomes JSON. encoding/json studies the types of a document
// anew in every process, which takes longer than the rest of a short run's
// report, so its fields are named here once more, in their order. A test holds
// this to what encoding/json makes of the same document.

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
)

// encode cannot fail: there is nothing in a document that JSON cannot say.
func (d *document) encode() []byte {
	const usual = 2048
	j := jsonText(make([]byte, 0, usual))
	j.document(d)
	return append(j, '\n')
}

func (j *jsonText) document(d *document) {
	j.open('{')
	j.key("schema").string(d.Schema)
	j.key("outcome").string(d.Outcome)
	j.key("reason").string(d.Reason)
	j.key("class").word(d.Class)
	j.key("rule").word(d.Rule)
	j.key("message").string(d.Message)
	j.key("exit_status").integer(int64(d.ExitStatus))
	wholeNumber(j.key("exit_code"), d.ExitCode)
	j.key("signal").word(d.Signal)
	j.key("timed_out").boolean(d.TimedOut)
	j.key("evidence").word(d.Evidence)
	j.key("command").strings(d.Command)
	j.key("tool").string(d.Tool)
	j.key("effect").string(d.Effect)
	j.key("idempotent").boolean(d.Idempotent)
	j.key("step").word(d.Step)
	j.key("run_id").string(d.RunID)
	j.key("idempotency_key").string(d.IdempotencyKey)
	j.key("depth").integer(int64(d.Depth))
	j.key("started_at").string(d.StartedAt)
	j.key("ended_at").word(d.EndedAt)
	j.key("elapsed_ms").integer(d.ElapsedMS)
	j.key("slept_ms").integer(d.SleptMS)
	j.key("deadline").word(d.Deadline)
	j.key("attempt_count").integer(int64(d.AttemptCount))
	j.key("retries").integer(int64(d.Retries))
	j.key("tail_truncated").boolean(d.TailTruncated)
	j.key("abridged").boolean(d.Abridged)
	array(j.key("attempts"), d.Attempts, (*jsonText).attempt)
	array(j.key("budgets"), d.Budgets, (*jsonText).budget)
	optional(j.key("breaker"), d.Breaker, (*jsonText).breaker)
	array(j.key("corrections"), d.Corrections, (*jsonText).correction)
	optional(j.key("reconciled"), d.Reconciled, (*jsonText).reconciliation)
	j.key("warnings").strings(d.Warnings)
	j.key("version").string(d.Version)
	j.close('}')
}

func (j *jsonText) attempt(a *attemptDocument) {
	j.open('{')
	j.key("n").integer(int64(a.N))
	j.key("started_at").string(a.StartedAt)
	j.key("elapsed_ms").integer(a.ElapsedMS)
	wholeNumber(j.key("exit_code"), a.ExitCode)
	j.key("signal").word(a.Signal)
	j.key("timed_out").boolean(a.TimedOut)
	j.key("class").word(a.Class)
	j.key("rule").word(a.Rule)
	j.key("evidence").word(a.Evidence)
	wholeNumber(j.key("retry_after_ms"), a.RetryAfterMS)
	wholeNumber(j.key("delay_ms"), a.DelayMS)
	j.close('}')
}

func (j *jsonText) budget(b *budgetDocument) {
	j.open('{')
	j.key("name").string(b.Name)
	j.key("store").string(b.Store)
	j.key("granted").integer(int64(b.Granted))
	j.key("denied").integer(int64(b.Denied))
	j.key("refunded").integer(int64(b.Refunded))
	j.key("tokens").float(b.Tokens)
	j.key("capacity").float(b.Capacity)
	wholeNumber(j.key("next_token_ms"), b.NextTokenMS)
	j.key("policy").word(b.Policy)
	j.close('}')
}

func (j *jsonText) breaker(b *breakerDocument) {
	j.open('{')
	j.key("budget").string(b.Budget)
	j.key("state").string(b.State)
	j.key("failures").integer(int64(b.Failures))
	j.key("retry_ms").integer(b.RetryMS)
	j.close('}')
}

func (j *jsonText) correction(c *correctionDocument) {
	j.open('{')
	j.key("after").integer(int64(c.After))
	j.key("argv").strings(c.Argv)
	j.key("error").word(c.Error)
	j.close('}')
}

func (j *jsonText) reconciliation(r *reconciliationDocument) {
	j.open('{')
	j.key("after").integer(int64(r.After))
	j.key("answer").string(r.Answer)
	wholeNumber(j.key("exit_code"), r.ExitCode)
	j.close('}')
}

// jsonText is JSON that grows at its end. A nil pointer or slice is null, as it
// is to encoding/json.
type jsonText []byte

func (j *jsonText) open(bracket byte) { *j = append(*j, bracket) }

func (j *jsonText) close(bracket byte) { *j = append(*j, bracket) }

// next writes the comma after an earlier element.
func (j *jsonText) next() {
	if last := (*j)[len(*j)-1]; last != '{' && last != '[' {
		*j = append(*j, ',')
	}
}

// key begins a field; its value follows. Names of fields are plain words.
func (j *jsonText) key(name string) *jsonText {
	j.next()
	*j = append(append(append(*j, '"'), name...), '"', ':')
	return j
}

func (j *jsonText) null()           { *j = append(*j, "null"...) }
func (j *jsonText) integer(n int64) { *j = strconv.AppendInt(*j, n, 10) }
func (j *jsonText) boolean(b bool)  { *j = strconv.AppendBool(*j, b) }
func (j *jsonText) word(s *string)  { optional(j, s, func(j *jsonText, s *string) { j.string(*s) }) }

func (j *jsonText) strings(list []string) {
	array(j, list, func(j *jsonText, s *string) { j.string(*s) })
}

// string writes s in quotes. What needs more than that is rare and left to
// encoding/json.
func (j *jsonText) string(s string) {
	if quotable(s) {
		*j = append(append(append(*j, '"'), s...), '"')
		return
	}
	j.encoded(s)
}

func quotable(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// float writes a whole number as such, and leaves others to encoding/json.
func (j *jsonText) float(f float64) {
	const exact = 1 << 53
	if f == math.Trunc(f) && math.Abs(f) < exact && !(f == 0 && math.Signbit(f)) {
		j.integer(int64(f))
		return
	}
	j.encoded(f)
}

// encoded writes a string or a number as encoding/json does.
func (j *jsonText) encoded(v any) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // no browser reads it; "<" costs one byte instead of six
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	*j = append(*j, bytes.TrimSuffix(b.Bytes(), []byte("\n"))...)
}

func wholeNumber[N int | int64](j *jsonText, n *N) {
	optional(j, n, func(j *jsonText, n *N) { j.integer(int64(*n)) })
}

func optional[T any](j *jsonText, v *T, write func(*jsonText, *T)) {
	if v == nil {
		j.null()
		return
	}
	write(j, v)
}

func array[T any](j *jsonText, list []T, write func(*jsonText, *T)) {
	if list == nil {
		j.null()
		return
	}
	j.open('[')
	for i := range list {
		j.next()
		write(j, &list[i])
	}
	j.close(']')
}
