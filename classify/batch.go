package classify

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxLine bounds one line of a batch, in bytes.
const maxLine = 16 << 20

// question is one line of a batch's input.
type question struct {
	ID       json.RawMessage `json:"id"`
	Argv     []string        `json:"argv"`
	Exit     *int            `json:"exit"`
	Signal   any             `json:"signal"`
	TimedOut bool            `json:"timed_out"`
	Stderr   string          `json:"stderr"`
	Stdout   string          `json:"stdout"`
}

// answer is one line of a batch's output.
type answer struct {
	ID           json.RawMessage `json:"id"`
	Class        *Class          `json:"class"` // null: it is a success
	Effect       Effect          `json:"effect"`
	Rule         *string         `json:"rule"`
	Action       string          `json:"action"`
	RetryAfterMS *int64          `json:"retry_after_ms"`
	Evidence     string          `json:"evidence"`
}

// Action returns what is done about a class by default: "retry", "check" or
// "stop".
func (c Class) Action() string {
	switch {
	case c.retried():
		return "retry"
	case c == Ambiguous:
		return "check"
	}
	return "stop"
}

// Batch classifies JSON lines, one finished command each, with the built-in
// rules and what the user says, and writes one JSON line for each, in order.
// Status 0 is a success, which has no class and for which there is nothing to
// do but stop, unless a rule that names the status says otherwise. show is
// applied to every piece of evidence before it is written, for redaction; nil
// leaves it as it is. Empty lines are skipped. The first malformed line ends the
// batch with an error that names it.
func Batch(r io.Reader, w io.Writer, o Options, show func(string) string) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), maxLine)
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	n := 0
	for in.Scan() {
		n++
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		a, err := answerTo(in.Bytes(), o)
		if err != nil {
			return errors.Join(fmt.Errorf("read line %d: %w", n, err), out.Flush())
		}
		if show != nil {
			a.Evidence = show(a.Evidence)
		}
		if err := enc.Encode(a); err != nil {
			return fmt.Errorf("write answer %d: %w", n, err)
		}
	}
	if err := in.Err(); err != nil {
		return errors.Join(fmt.Errorf("read line %d: %w", n+1, err), out.Flush())
	}
	return out.Flush()
}

func answerTo(line []byte, o Options) (answer, error) {
	var q question
	if err := json.Unmarshal(line, &q); err != nil {
		return answer{}, err
	}
	a, err := q.attempt()
	if err != nil {
		return answer{}, err
	}
	c := New(ReadWith(q.Argv, o.Files), o)
	ans := answer{ID: q.ID, Effect: c.Effect(), Action: "stop"}
	if ans.ID == nil {
		ans.ID = json.RawMessage("null")
	}
	v, failed := c.outcome(a)
	if !failed {
		return ans, nil
	}
	ans.Class, ans.Action, ans.Evidence = &v.Class, v.Class.Action(), v.Evidence
	if v.Rule != "" {
		ans.Rule = &v.Rule
	}
	if ms := v.RetryAfter.Milliseconds(); ms > 0 {
		ans.RetryAfterMS = &ms
	}
	return ans, nil
}

// outcome judges an attempt of which it is not known yet whether it failed.
func (c *Classifier) outcome(a Attempt) (Verdict, bool) {
	if a.Exit == 0 && a.Signal == 0 && !a.TimedOut {
		return c.SuccessRuleMatch(a)
	}
	return c.Classify(a), true
}

func (q *question) attempt() (Attempt, error) {
	if len(q.Argv) == 0 {
		return Attempt{}, errors.New("argv is missing or empty")
	}
	a := Attempt{Argv: q.Argv, Exit: -1, TimedOut: q.TimedOut, Stderr: []byte(q.Stderr), Stdout: []byte(q.Stdout)}
	if q.Exit != nil {
		a.Exit = *q.Exit
	}
	switch s := q.Signal.(type) {
	case nil:
	case float64:
		a.Signal = int(s)
	case string:
		if a.Signal = signalNumber(strings.TrimSpace(s)); a.Signal == 0 && s != "" {
			return Attempt{}, fmt.Errorf("signal %q is not known", s)
		}
	default:
		return Attempt{}, errors.New("signal is neither a number nor a name")
	}
	return a, nil
}
