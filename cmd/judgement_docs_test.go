package cmd_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What is retried by default is what the pages say, word for word
// (https://github.com/buildkite/docs/pull/306: they said something else).

// failureText is a failure for each word with which the pages describe a class.
// The command is one that nobody knows, unless the word is about one.
type failureText struct {
	argv, stderr string
	exit         int
	signal       string
	timedOut     bool
}

func describedFailures() map[string]failureText {
	says := func(text string) failureText { return failureText{argv: "fetch-it", exit: 1, stderr: text} }
	return map[string]failureText{
		"refused":              says("connect to 127.0.0.1 port 9: Connection refused"),
		"a refused connection": says("dial tcp 127.0.0.1:9: connect: connection refused"),
		"reset":                says("read: connection reset by peer"),
		"DNS":                  says("Temporary failure in name resolution"),
		"429":                  says("HTTP/1.1 429 Too Many Requests"),
		"5xx":                  says("server answered 503 Service Unavailable"),
		"a held lock":          {argv: "apt-get update", exit: 100, stderr: "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 17 (apt)"},

		"404":              says("HTTP/1.1 404 Not Found"),
		"disk full":        says("write out.bin: No space left on device"),
		"a merge conflict": {argv: "git merge topic", exit: 1, stderr: "CONFLICT (content): Merge conflict in a.txt"},
		"a failed test":    {argv: "pytest -q", exit: 1, stderr: "=== 1 failed, 3 passed in 0.12s ==="},

		"credentials": says("HTTP/1.1 401 Unauthorized"),
		"certificate": says("SSL certificate problem: self-signed certificate"),
		"URL":         {argv: "curl -fsS htp://x", exit: 1, stderr: "curl: (1) Protocol \"htp\" not supported"},
		"usage":       says("fetch-it: unrecognized option '--frob'"),

		"the input is malformed and the caller could correct it": {argv: "jq .a in.json", exit: 5, stderr: "jq: error: syntax error, unexpected INVALID_CHARACTER at line 1\nparse error: Invalid numeric literal at line 1, column 5"},
		"a write may or may not have happened":                   {argv: "curl -X POST -d a=b http://127.0.0.1/", exit: 28, stderr: "curl: (28) Operation timed out after 3001 milliseconds with 0 bytes received", timedOut: true},
		"a bug":                                                  says("panic: runtime error: index out of range [3] with length 3"),
		"a crash":                                                {argv: "fetch-it", signal: "SIGSEGV"},
		"nothing matched":                                        {argv: "fetch-it", exit: 3},
	}
}

// described is what a page says of a class: the words, and what is done.
type described struct {
	words   []string
	retried bool
}

func classesOfReadme(t *testing.T) map[string]described {
	t.Helper()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	classes := map[string]described{}
	_, table, _ := strings.Cut(string(text), "| class | means | what is done |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	for row := range strings.Lines(table) {
		cells := strings.Split(strings.Trim(row, "| \n"), " | ")
		classes[strings.Trim(cells[0], "`")] = described{wordsOf(cells[1]), strings.HasPrefix(cells[2], "retry")}
	}
	return classes
}

func classesOfManual(t *testing.T) map[string]described {
	t.Helper()
	text := strings.NewReplacer(`\-`, "-", "\n", " ").Replace(string(printed(t, "man")))
	_, list, _ := strings.Cut(text, "A failure is judged as one of seven classes:")
	list, _, _ = strings.Cut(list, ".SH")
	classes := map[string]described{}
	for _, m := range regexp.MustCompile(`\.TP \\fB(\w+)\\fR (.*?)\. (Retried|Not retried)`).FindAllStringSubmatch(list, -1) {
		classes[m[1]] = described{wordsOf(m[2]), m[3] == "Retried"}
	}
	return classes
}

// wordsOf takes a description apart: "trouble that passes by itself: refused,
// reset" is two words, "a bug or a crash" as well.
func wordsOf(text string) []string {
	if _, list, ok := strings.Cut(text, ": "); ok {
		return strings.Split(list, ", ")
	}
	if strings.HasPrefix(text, "a bug or ") {
		return strings.Split(text, " or ")
	}
	return []string{text}
}

func TestPagesSayWhatIsRetried(t *testing.T) {
	t.Parallel()
	readme, manual := classesOfReadme(t), classesOfManual(t)
	judged := judgedByDefault(t, describedFailures())
	for page, classes := range map[string]map[string]described{"README.md": readme, "the manual": manual} {
		if got, want := slices.Sorted(maps.Keys(classes)), []string{"ambiguous", "config", "correctable", "permanent", "transient", "unexpected", "unknown"}; !slices.Equal(got, want) {
			t.Fatalf("%s knows classes %q, want %q", page, got, want)
		}
		for class, d := range classes {
			if d.retried != readme[class].retried {
				t.Errorf("%s and README.md differ about %s", page, class)
			}
			for _, word := range d.words {
				got, ok := judged[word]
				if !ok {
					t.Errorf("%s describes %s by %q: add a failure that is meant to this test", page, class, word)
				} else if got.Class != class || (got.Action == "retry") != d.retried {
					t.Errorf("%s: %q is %s, retried: %v; it is judged as %s: %s", page, word, class, d.retried, got.Class, got.Action)
				}
			}
		}
	}
}

// judgement is an answer of classify --batch.
type judgement struct{ ID, Class, Action string }

// judgedByDefault asks what the default judgement of failures is, as a user
// without a configuration.
func judgedByDefault(t *testing.T, failures map[string]failureText) map[string]judgement {
	t.Helper()
	var in bytes.Buffer
	lines := json.NewEncoder(&in)
	for id, f := range failures {
		if err := lines.Encode(map[string]any{
			"id": id, "argv": strings.Fields(f.argv), "exit": f.exit, "signal": f.signal, "timed_out": f.timedOut, "stderr": f.stderr, "stdout": "",
		}); err != nil {
			t.Fatal(err)
		}
	}
	ask := exec.Command("retryx", "classify", "--batch")
	ask.Env, ask.Stdin = surroundings(t.TempDir()), &in
	out, err := ask.Output()
	if err != nil {
		t.Fatalf("classify --batch: %v", err)
	}
	judged := map[string]judgement{}
	for answers := json.NewDecoder(bytes.NewReader(out)); answers.More(); {
		var j judgement
		if err := answers.Decode(&j); err != nil {
			t.Fatal(err)
		}
		judged[j.ID] = j
	}
	return judged
}

// A run does what its judgement says: one failure of each class, twice at most.
func TestRunsRetryWhatThePagesSay(t *testing.T) {
	t.Parallel()
	for class, d := range classesOfReadme(t) {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			f := describedFailures()[d.words[0]]
			dir := t.TempDir()
			argv := strings.Fields(f.argv)
			ending := "exit " + string(rune('0'+f.exit%10))
			if class == "unexpected" {
				ending = "kill -SEGV $$"
			}
			writeFile(t, filepath.Join(dir, argv[0]), []byte("#!/bin/sh\necho run >>runs\ncat said >&2\n"+ending+"\n"))
			if err := os.Chmod(filepath.Join(dir, argv[0]), 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, "said"), []byte(f.stderr+"\n"))
			environ := surroundings(dir)
			environ[0] = "PATH=" + dir + ":" + os.Getenv("PATH")
			run := exec.Command("retryx", append([]string{"-q", "-n", "2", "--outcome", "out", "--"}, argv...)...)
			run.Dir, run.Env = dir, environ
			_ = run.Run()
			runs, err := os.ReadFile(filepath.Join(dir, "runs"))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Count(string(runs), "run"); (got == 2) != d.retried {
				out, _ := os.ReadFile(filepath.Join(dir, "out"))
				t.Errorf("%s ran %d times, want retried: %v\n%s", class, got, d.retried, out)
			}
		})
	}
}
