package classify_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retryx/retryx/classify"
)

func split(joined string) []string { return strings.Split(joined, "\x00") }

// failed judges a failure with exit status 1 and a text on stderr.
func failed(t *testing.T, o classify.Options, command, stderr string) classify.Verdict {
	t.Helper()
	argv := strings.Fields(command)
	return classify.New(classify.Read(argv), o).Classify(classify.Attempt{Argv: argv, Exit: 1, Stderr: []byte(stderr)})
}

func rules(t *testing.T, specs ...string) []classify.Rule {
	t.Helper()
	var out []classify.Rule
	for _, spec := range specs {
		r, err := classify.ParseRule(spec)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func TestOrderOfSources(t *testing.T) {
	file, err := classify.ParseFile("my.yaml", []byte("tool: frob\nrules:\n  - {id: mine, class: correctable, output: connection refused}\n"))
	if err != nil {
		t.Fatal(err)
	}
	all := classify.Options{
		Flags:  rules(t, "permanent: stderr=refused"),
		Env:    rules(t, "transient: exit=1"),
		Config: rules(t, "config: exit=1"),
		Files:  []classify.Rules{file},
	}
	argv := []string{"frob"}
	attempt := classify.Attempt{Argv: argv, Exit: 1, Stderr: []byte("frob: connection refused")}
	for _, tc := range []struct {
		name   string
		strip  func(*classify.Options)
		hinted classify.Class
		class  classify.Class
		rule   string
	}{
		{"flags", func(*classify.Options) {}, classify.Unexpected, classify.Permanent, "flag/1"},
		{"hint", func(o *classify.Options) { o.Flags = nil }, classify.Unexpected, classify.Unexpected, "hint/class"},
		{"variables", func(o *classify.Options) { o.Flags = nil }, "", classify.Transient, "env/1"},
		{"config", func(o *classify.Options) { o.Flags, o.Env = nil, nil }, "", classify.Config, "config/1"},
		{"files", func(o *classify.Options) { o.Flags, o.Env, o.Config = nil, nil, nil }, "", classify.Correctable, "frob/mine"},
		{"generic", func(o *classify.Options) { *o = classify.Options{} }, "", classify.Transient, "errno/connection-refused"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := all
			tc.strip(&o)
			got := classify.New(classify.Read(argv), o).ClassifyHinted(attempt, tc.hinted, 0)
			if got.Class != tc.class || got.Rule != tc.rule || !got.Matched {
				t.Errorf("ClassifyHinted(%s) = %s by %q, matched %t, want %s by %q", tc.name, got.Class, got.Rule, got.Matched, tc.class, tc.rule)
			}
		})
	}
}

func TestStopBeatsRetryAmongTheUsersRules(t *testing.T) {
	o := classify.Options{Flags: rules(t, "transient: exit=1", "permanent: exit=1", "config: exit=1")}
	if got := failed(t, o, "frob", "x"); got.Class != classify.Permanent || got.Rule != "flag/2" {
		t.Errorf("Classify = %s by %q, want permanent by flag/2", got.Class, got.Rule)
	}
}

func TestTheFinalErrorDecides(t *testing.T) {
	for _, tc := range []struct {
		name, command, stderr string
		want                  classify.Class
	}{
		{"noise, then cause", "frob", "retrying after 503 Service Unavailable\nHTTP 404 Not Found", classify.Permanent},
		{"earlier stop, final reset", "frob", "HTTP 404 Not Found, using the mirror\nread: connection reset by peer", classify.Transient},
		{"chatter last", "frob", "HTTP 404 Not Found\nretrying after HTTP 503", classify.Permanent},
		{"nothing but chatter", "frob", "retrying: connection refused", classify.Transient},
		{"misleading last line", "pip install x", "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError: [Errno 111] Connection refused'\nERROR: No matching distribution found for x", classify.Transient},
		{"the same line without a cause", "pip install x", "ERROR: No matching distribution found for x", classify.Permanent},
		{"stop beats retry on a line", "frob", "connection failed: permission denied", classify.Config},
		{"decisive", "frob", "1 failed, 3 passed\nconnection refused", classify.Permanent},
		{"colours inside the words", "frob", "Connec\x1b[Ktion \x1b[31mrefused\x1b[0m", classify.Transient},
		{"another language", "frob", "Fehler: Verbindungsaufbau abgelehnt", classify.Transient},
		{"number only", "frob", "エラー [Errno 111]", classify.Transient},
		{"a nested retryx", "frob", "retryx: stopped: permanent (http/not-found): HTTP 404\nread: connection reset by peer\nretryx: HTTP 404", classify.Transient},
		{"a script that runs curl", "./deploy.sh", "step 3\ncurl: (22) The requested URL returned error: 404", classify.Permanent},
		{"long line", "frob", strings.Repeat("x ", 9000) + "connection refused", classify.Transient},
		{"forms of a label", "frob", "[ERROR] permission denied", classify.Config},
		{"nothing", "frob", "", classify.Unknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := failed(t, classify.Options{}, tc.command, tc.stderr); got.Class != tc.want {
				t.Errorf("Classify(%q) = %s by %q on %q, want %s", tc.stderr, got.Class, got.Rule, got.Evidence, tc.want)
			}
		})
	}
}

func TestBrokenLinesAreJoined(t *testing.T) {
	const start = "frob has looked at the mirror of the house and at its neighbour: "
	for _, tc := range []struct{ stderr, rule string }{
		{start + "address already in\nuse", "errno/address-in-use"},
		{start + "address alre\nady in use", "errno/address-in-use"},
		{"│ " + start + "address\n│ already in use", "errno/address-in-use"},
		{"address already in\nuse", ""},
		{start + "address already in\n\nuse", ""},
	} {
		if got := failed(t, classify.Options{}, "frob", tc.stderr); got.Rule != tc.rule {
			t.Errorf("Classify(%q) by %q, want %q", tc.stderr, got.Rule, tc.rule)
		}
	}
}

func TestForeignRulesSpeakOfTextAlone(t *testing.T) {
	argv := []string{"./x.sh"}
	a := classify.Attempt{Argv: argv, Exit: 2, Stderr: []byte("curl: (22) The requested URL returned error: 503\nthe value of x is badly chosen")}
	if got := classify.New(classify.Read(argv), classify.Options{}).Classify(a); got.Rule != "http/server-error" {
		t.Errorf("Classify(%q) by %q, want http/server-error: exit 2 is not curl's", a.Stderr, got.Rule)
	}
}

func TestEffectDecidesAboutMaybeApplied(t *testing.T) {
	const reset, refused, odd = "connection reset by peer", "connection refused", "hmm"
	for _, tc := range []struct {
		name       string
		effect     classify.Effect
		idempotent bool
		stderr     string
		want       classify.Class
	}{
		{"write, reset", classify.EffectWrite, false, reset, classify.Ambiguous},
		{"write, refused", classify.EffectWrite, false, refused, classify.Transient},
		{"write, unknown", classify.EffectWrite, false, odd, classify.Ambiguous},
		{"idempotent write, reset", classify.EffectWrite, true, reset, classify.Transient},
		{"idempotent write, unknown", classify.EffectWrite, true, odd, classify.Unknown},
		{"read, reset", classify.EffectRead, false, reset, classify.Transient},
		{"repeatable, reset", classify.EffectRepeatable, false, reset, classify.Transient},
		{"unknown effect, reset", classify.EffectUnknown, false, reset, classify.Transient},
		{"unknown effect, unknown", classify.EffectUnknown, false, odd, classify.Unknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := classify.Options{Effect: tc.effect, Idempotent: tc.idempotent}
			if got := failed(t, o, "frob", tc.stderr); got.Class != tc.want {
				t.Errorf("Classify(%s, %s) = %s, want %s", tc.effect, tc.stderr, got.Class, tc.want)
			}
		})
	}
}

// What the user declares outweighs a rule that asks for an effect.
func TestDeclaredOutweighsTheOutput(t *testing.T) {
	const posted = `Post "https://api.example/v1/orders": EOF`
	const cut = "Connection to h closed by remote host."
	for _, tc := range []struct {
		command, stderr string
		o               classify.Options
		want            classify.Class
	}{
		{"./job", posted, classify.Options{}, classify.Ambiguous},
		{"./job", posted, classify.Options{Idempotent: true}, classify.Transient},
		{"./job", posted, classify.Options{Effect: classify.EffectRepeatable}, classify.Transient},
		{"./job", posted, classify.Options{Effect: classify.EffectRead}, classify.Transient},
		{"./job", posted, classify.Options{Effect: classify.EffectWrite}, classify.Ambiguous},
		{"ssh h ./deploy.sh", cut, classify.Options{}, classify.Ambiguous},
		{"ssh h ./deploy.sh", cut, classify.Options{Idempotent: true}, classify.Transient},
	} {
		argv := strings.Fields(tc.command)
		a := classify.Attempt{Argv: argv, Exit: 255, Stderr: []byte(tc.stderr)}
		if got := classify.New(classify.Read(argv), tc.o).Classify(a); got.Class != tc.want {
			t.Errorf("Classify(%s, %q) with %+v = %s by %q, want %s", tc.command, tc.stderr, tc.o, got.Class, got.Rule, tc.want)
		}
	}
}

func TestAUsersRuleIsNeverMaybeApplied(t *testing.T) {
	o := classify.Options{Effect: classify.EffectWrite, Flags: rules(t, "transient: stderr=reset")}
	if got := failed(t, o, "frob", "connection reset"); got.Class != classify.Transient {
		t.Errorf("Classify = %s, want transient", got.Class)
	}
}

func TestTimedOut(t *testing.T) {
	for _, tc := range []struct {
		name, command string
		o             classify.Options
		want          classify.Class
	}{
		{"read", "curl http://x/", classify.Options{}, classify.Transient},
		{"write", "curl -d x http://x/", classify.Options{}, classify.Ambiguous},
		{"declared write", "curl -d x http://x/", classify.Options{Idempotent: true}, classify.Transient},
		{"unknown", "./x.sh", classify.Options{}, classify.Transient},
		{"docker run", "docker run alpine true", classify.Options{}, classify.Ambiguous},
		{"docker run behind sudo", "sudo docker run alpine true", classify.Options{}, classify.Ambiguous},
		{"declared docker run", "docker run alpine true", classify.Options{Effect: classify.EffectRead}, classify.Transient},
		{"ssh that reads", "ssh h uptime", classify.Options{}, classify.Transient},
		{"ssh that does not", "ssh h ./deploy.sh", classify.Options{}, classify.Ambiguous},
		{"kubectl exec", "kubectl exec p -- x", classify.Options{}, classify.Ambiguous},
		{"a user's rule", "docker run alpine true", classify.Options{Flags: rules(t, "permanent: stderr=half")}, classify.Permanent},
	} {
		t.Run(tc.name, func(t *testing.T) {
			argv := strings.Fields(tc.command)
			a := classify.Attempt{Argv: argv, Exit: -1, Signal: 15, TimedOut: true, Stderr: []byte("half way")}
			if got := classify.New(classify.Read(argv), tc.o).Classify(a); got.Class != tc.want {
				t.Errorf("Classify(%s timed out) = %s by %q, want %s", tc.command, got.Class, got.Rule, tc.want)
			}
		})
	}
}

func TestHintedWaitWins(t *testing.T) {
	c := classify.New(classify.Read([]string{"frob"}), classify.Options{})
	a := classify.Attempt{Exit: 1, Stderr: []byte("HTTP 429\nRetry-After: 30")}
	if got := c.Classify(a).RetryAfter; got != 30*time.Second {
		t.Errorf("Classify.RetryAfter = %v, want 30s", got)
	}
	if got := c.ClassifyHinted(a, classify.Transient, time.Second).RetryAfter; got != time.Second {
		t.Errorf("ClassifyHinted(1s).RetryAfter = %v, want 1s", got)
	}
	a.Stderr = []byte("HTTP 404\nRetry-After: 30")
	if got := c.Classify(a).RetryAfter; got != 0 {
		t.Errorf("Classify(404).RetryAfter = %v, want 0", got)
	}
}

func TestSuccessRuleMatch(t *testing.T) {
	argv := []string{"frob"}
	attempt := classify.Attempt{Argv: argv, Exit: 0, Stdout: []byte("status: SERVFAIL")}
	for _, tc := range []struct {
		name, spec string
		want       bool
	}{
		{"names the status and matches", "transient: exit=0 stdout=SERVFAIL", true},
		{"names the status, does not match", "transient: exit=0 stdout=NXDOMAIN", false},
		{"names another status", "transient: exit=1 stdout=SERVFAIL", false},
		{"names none", "transient: stdout=SERVFAIL", false},
		{"one names it, another matches", "transient: exit=0 stdout=NXDOMAIN|permanent: stdout=SERVFAIL", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := classify.New(classify.Read(argv), classify.Options{Flags: rules(t, strings.Split(tc.spec, "|")...)})
			if got, ok := c.SuccessRuleMatch(attempt); ok != tc.want {
				t.Errorf("SuccessRuleMatch(%q) = %+v, %t, want %t", tc.spec, got, ok, tc.want)
			}
		})
	}
}

func TestParseRule(t *testing.T) {
	o := classify.Options{Flags: rules(t, `permanent: exit=7,50-60 signal=TERM,9 stderr=^a b=c: \d+$`)}
	for _, tc := range []struct {
		exit, signal int
		stderr       string
		want         bool
	}{
		{55, 15, "x\na b=c: 12\ny", true},
		{55, 9, "a b=c: 12", true},
		{55, 0, "a b=c: 12", false},
		{8, 15, "a b=c: 12", false},
		{55, 15, "A B=C: 12", false},
		{55, 15, "a b=c: 12 ", false},
	} {
		a := classify.Attempt{Exit: tc.exit, Signal: tc.signal, Stderr: []byte(tc.stderr)}
		got := classify.New(classify.Read([]string{"frob"}), o).Classify(a)
		if (got.Rule == "flag/1") != tc.want {
			t.Errorf("Classify(exit %d, signal %d, %q) by %q, want the rule to match: %t", tc.exit, tc.signal, tc.stderr, got.Rule, tc.want)
		}
	}
	if got := failed(t, classify.Options{Flags: rules(t, "permanent: signal=SEGV")}, "frob", ""); got.Matched {
		t.Errorf("a signal= rule matched exit 1: %+v", got)
	}
	for _, bad := range []string{"", "transient", "transient:", "unknown: exit=1", "odd: exit=1", "transient: exit=", "transient: exit=999", "transient: signal=FROB", "transient: stderr=", "transient: stderr=(", "transient: frob=1", "transient: refused", "transient: exit=1 refused", "transient: exit=1 exit=2", "transient: signal=KILL signal=TERM"} {
		if r, err := classify.ParseRule(bad); err == nil {
			t.Errorf("ParseRule(%q) = %+v, want an error", bad, r)
		} else if !strings.Contains(err.Error(), "read rule") {
			t.Errorf("ParseRule(%q) = %v, want an error that names the rule", bad, err)
		}
	}
}

func TestVerdictExplainsItself(t *testing.T) {
	got := failed(t, classify.Options{}, "frob", "  noise\n  \x1b[31mopen x: permission denied\x1b[0m  \n")
	want := classify.Verdict{
		Class: classify.Config, Rule: "errno/permission", Evidence: "open x: permission denied",
		Why: got.Why, Source: got.Source, Matched: true,
	}
	if d := cmp.Diff(want, got); d != "" || got.Why == "" || got.Source == "" {
		t.Errorf("Classify differs (-want +got):\n%s", d)
	}
	if got := failed(t, classify.Options{}, "frob", "zzz\n\n"); got.Evidence != "zzz" || got.Matched {
		t.Errorf("Classify(nothing known) = %+v, want the last line as evidence", got)
	}
}

func TestBatch(t *testing.T) {
	in := `{"id":"a","argv":["curl","-d","x","http://x/"],"exit":56,"signal":null,"stderr":"curl: (56) Recv failure: Connection reset by peer"}

{"id":2,"argv":["./x"],"signal":"SIGSEGV"}
{"id":"c","argv":["./x"],"exit":1,"signal":6}
{"id":"d","argv":["./x"],"exit":1,"stderr":"HTTP 429, try again in 2s <now>"}
{"id":"e","argv":["./x"],"exit":0,"stderr":"warning: connection refused, taking the copy"}
{"id":"f","argv":["dig","x"],"exit":0,"stdout":";; ->>HEADER<<- opcode: QUERY, status: SERVFAIL, id: 1"}
{"id":"g","argv":["./x"],"exit":0,"timed_out":true}
`
	var out bytes.Buffer
	if err := classify.Batch(strings.NewReader(in), &out, classify.Options{}, func(s string) string { return s }); err != nil {
		t.Fatal(err)
	}
	var got []map[string]any
	for line := range strings.Lines(out.String()) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		got = append(got, m)
	}
	want := []map[string]any{
		{"id": "a", "class": "ambiguous", "effect": "write", "rule": "curl/odd-reply", "action": "check", "retry_after_ms": nil, "evidence": "curl: (56) Recv failure: Connection reset by peer"},
		{"id": 2.0, "class": "unexpected", "effect": "unknown", "rule": "signal/crash", "action": "stop", "retry_after_ms": nil, "evidence": ""},
		{"id": "c", "class": "unexpected", "effect": "unknown", "rule": "signal/crash", "action": "stop", "retry_after_ms": nil, "evidence": ""},
		{"id": "d", "class": "transient", "effect": "unknown", "rule": "http/too-many-requests", "action": "retry", "retry_after_ms": 2000.0, "evidence": "HTTP 429, try again in 2s <now>"},
		{"id": "e", "class": nil, "effect": "unknown", "rule": nil, "action": "stop", "retry_after_ms": nil, "evidence": ""},
		{"id": "f", "class": "transient", "effect": "read", "rule": "dig/servfail", "action": "retry", "retry_after_ms": nil, "evidence": ";; ->>HEADER<<- opcode: QUERY, status: SERVFAIL, id: 1"},
		{"id": "g", "class": "transient", "effect": "unknown", "rule": "retryx/timed-out", "action": "retry", "retry_after_ms": nil, "evidence": ""},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("Batch differs (-want +got):\n%s", d)
	}
}

func TestBatchKnowsTheUsersRules(t *testing.T) {
	file, err := classify.ParseFile("mine.yaml", []byte("tool: frob\neffects: [{effect: write}]\nrules: []\n"))
	if err != nil {
		t.Fatal(err)
	}
	o := classify.Options{Flags: rules(t, "config: exit=9"), Files: []classify.Rules{file}}
	in := `{"id":1,"argv":["x"],"exit":9}` + "\n" + `{"id":2,"argv":["frob"],"exit":1}` + "\n"
	var out bytes.Buffer
	if err := classify.Batch(strings.NewReader(in), &out, o, nil); err != nil {
		t.Fatal(err)
	}
	want := `{"id":1,"class":"config","effect":"unknown","rule":"flag/1","action":"stop","retry_after_ms":null,"evidence":""}
{"id":2,"class":"ambiguous","effect":"write","rule":null,"action":"check","retry_after_ms":null,"evidence":""}
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Errorf("Batch differs (-want +got):\n%s", d)
	}
}

func TestBadPatternsAreShownAsTheyAreWritten(t *testing.T) {
	_, err := classify.ParseRule("config: stderr=(")
	_, fileErr := classify.ParseFile("x.yaml", []byte("tool: x\nrules: [{id: a, class: config, output: '('}]\n"))
	for _, err := range []error{err, fileErr} {
		if err == nil || strings.Contains(err.Error(), "(?") {
			t.Errorf("a bad pattern gives %v, want an error without flags that the user did not write", err)
		}
	}
}

func TestBatchNamesTheMalformedLine(t *testing.T) {
	good := `{"id":"a","argv":["x"],"exit":1}` + "\n"
	for _, bad := range []string{"{", `{"id":1}`, `{"argv":[]}`, `{"argv":["x"],"signal":"FROB"}`, `{"argv":["x"],"signal":{}}`, `{"argv":"x"}`} {
		var out bytes.Buffer
		err := classify.Batch(strings.NewReader(good+bad+"\n"), &out, classify.Options{}, nil)
		if err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("Batch(%q) = %v, want an error that names line 2", bad, err)
		}
		if strings.Count(out.String(), "\n") != 1 {
			t.Errorf("Batch(%q) wrote %q, want the answer to line 1", bad, out.String())
		}
	}
}

func FuzzClassify(f *testing.F) {
	f.Add("curl\x00-d\x00x", 56, 0, []byte("curl: (56) Recv failure: Connection reset by peer"), []byte("try again in 5s"))
	f.Add("sh\x00-c\x00x", -1, 9, []byte("\x1b[31m\xff\x00npm error code E503\r\n"), []byte(strings.Repeat("wrapped line of a console ", 9)+"\nend"))
	f.Fuzz(func(t *testing.T, joined string, exit, signal int, stderr, stdout []byte) {
		argv := split(joined)
		a := classify.Attempt{Argv: argv, Exit: exit, Signal: signal, Stderr: stderr, Stdout: stdout}
		first := classify.New(classify.Read(argv), classify.Options{}).Classify(a)
		second := classify.New(classify.Read(argv), classify.Options{}).Classify(a)
		if d := cmp.Diff(first, second); d != "" {
			t.Errorf("Classify(%q) is not the same twice:\n%s", argv, d)
		}
		if first.Class == "" || strings.ContainsAny(first.Evidence, "\n\r\x1b\x00") || first.RetryAfter < 0 || len(first.Evidence) > 64<<10 {
			t.Errorf("Classify(%q) = %+v, want a class, clean evidence and no negative wait", argv, first)
		}
	})
}
