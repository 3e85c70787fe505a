package cmd_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
)

// What real shells make of the completions in the tree: each is asked on a
// terminal, as a user asks it. Fish can be asked without one.

// tabs are what is typed before the tab, and what must be offered.
func tabs() []struct {
	name, line string
	want       []string
	never      string
} {
	return []struct {
		name, line string
		want       []string
		never      string
	}{
		{"a flag", "retryx --max-a", []string{"--max-attempts"}, ""},
		{"flags", "retryx --max-", []string{"--max-attempts", "--max-delay", "--max-elapsed"}, "--multiplier"},
		{"a budget", "retryx --budget ", []string{"artifacts", "billing-api"}, "somefile"},
		{"a budget's start", "retryx -b art", []string{"artifacts"}, "billing-api"},
		{"a budget of a command", "retryx budget show ", []string{"artifacts", "billing-api"}, "somefile"},
		{"a list's next", "retryx --retry-on transient,", []string{"unknown", "ambiguous"}, "somefile"},
		{"a profile", "retryx --profile ", []string{"nightly", "weekly"}, "somefile"},
		{"a choice", "retryx --jitter ", []string{"decorrelated", "equal"}, "somefile"},
		{"a rule", "retryx rules show curl/connect-", []string{"curl/connect-refused", "curl/connect-timeout"}, "git/"},
		{"a command of ours", "retryx his", []string{"history"}, ""},
		{"commands of ours", "retryx ", []string{"history", "budget", "completion"}, ""},
		{"a command's command", "retryx budget ", []string{"list", "reset"}, "somefile"},
		{"a reason", "retryx history --reason budget_", []string{"budget_denied", "budget_unavailable"}, ""},
		{"a file", "retryx report some", []string{"somefile"}, ""},
		{"a file by its ending", "retryx --rules rul", []string{"rules.yaml"}, "not found"},
		{"a directory", "retryx --state-dir sub", []string{"subdir"}, "not found"},
		{"another's name", "retryx -n 2 -- wrapp", []string{"wrapped"}, ""},
		{"another's word", "retryx -n 2 -- wrapped al", []string{"alpha"}, "beta"},
		{"another's words", "retryx --max-elapsed 2m -- wrapped ", []string{"alpha", "beta"}, "artifacts"},
	}
}

// shellHome makes a home with budgets, profiles and commands, and returns it
// with the environment for a shell in it.
func shellHome(t *testing.T) (string, []string) {
	t.Helper()
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{bin, filepath.Join(home, ".config/retryx"), filepath.Join(home, "cwd/subdir")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(self, filepath.Join(bin, "retryx")); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"bin/wrapped": "#!/bin/sh\n", "cwd/somefile": "", "cwd/rules.yaml": "",
		".config/retryx/config.yaml": "profiles:\n  nightly: {max_attempts: 2}\n  weekly: {max_attempts: 3}\n",
	} {
		mode := os.FileMode(0o600)
		if strings.HasPrefix(name, "bin/") {
			mode = 0o700
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	environ := []string{"HOME=" + home, "PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "TERM=vt100", "LANG=C.UTF-8", "ZDOTDIR=" + home}
	for _, name := range []string{"artifacts", "billing-api"} {
		c := exec.Command(filepath.Join(bin, "retryx"), "budget", "set", name, "--capacity", "9")
		c.Env = environ
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("budget set %s: %v\n%s", name, err, out)
		}
	}
	return home, environ
}

func completionFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../completions", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func wantShell(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skip("needs " + name)
	}
	return path
}

// dialog is a shell on a terminal.
type dialog struct {
	t    *testing.T
	tty  *os.File
	read chan []byte
	seen bytes.Buffer
}

func converse(t *testing.T, environ []string, dir string, argv ...string) *dialog {
	t.Helper()
	c := exec.Command(argv[0], argv[1:]...)
	c.Env, c.Dir = environ, dir
	tty, err := pty.StartWithSize(c, &pty.Winsize{Rows: 200, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	d := &dialog{t: t, tty: tty, read: make(chan []byte)}
	go func() {
		defer close(d.read)
		for {
			b := make([]byte, 4096)
			n, err := tty.Read(b)
			if err != nil {
				return
			}
			d.read <- b[:n]
		}
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = tty.Close()
		for range d.read { // until the reader has left
		}
		_ = c.Wait()
	})
	return d
}

// say types text.
func (d *dialog) say(text string) {
	d.t.Helper()
	if _, err := d.tty.WriteString(text); err != nil {
		d.t.Fatal(err)
	}
}

var terminalCodes = regexp.MustCompile(`\x1b(\[[0-9;?]*[a-zA-Z]|[()][A-Z0-9]|[=>78])|[\x07\x0f\r]`)

// until reads until every text was seen since the last question, and returns all
// that was.
func (d *dialog) until(texts ...string) string {
	d.t.Helper()
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		text := terminalCodes.ReplaceAllString(d.seen.String(), "")
		missing := ""
		for _, want := range texts {
			if !strings.Contains(text, want) {
				missing = want
			}
		}
		if missing == "" {
			return text
		}
		select {
		case b, ok := <-d.read:
			if !ok {
				d.t.Fatalf("the shell ended before %q:\n%s", missing, text)
			}
			d.seen.Write(b)
		case <-late.C:
			d.t.Fatalf("no %q in:\n%s", missing, text)
		}
	}
}

// ask types a line, then what starts the completion, and holds what is shown to
// what is wanted. Afterwards the line is empty.
func (d *dialog) ask(t *testing.T, line, key string, want []string, never string) {
	t.Helper()
	d.t = t
	d.seen.Reset()
	d.say(line)
	d.until(strings.TrimSpace(line))
	d.say(key)
	d.until(want...)
	d.say("\x15echo en''d\n")
	shown := d.until("end\n")
	if never != "" && strings.Contains(shown, never) {
		t.Errorf("completions of %q offer %q:\n%s", line, never, shown)
	}
}

func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	shell := wantShell(t, "bash")
	const library = "/usr/share/bash-completion/bash_completion"
	for _, with := range []bool{false, true} {
		name := map[bool]string{false: "alone", true: "with bash-completion"}[with]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(library); with && err != nil {
				t.Skip("needs bash-completion")
			}
			home, environ := shellHome(t)
			d := converse(t, environ, filepath.Join(home, "cwd"), shell, "--norc", "--noprofile", "-i")
			if with {
				d.say(". " + library + "\n")
			}
			d.say("bind 'set show-all-if-ambiguous on'; bind 'set completion-query-items 0'; bind 'set page-completions off'; bind 'set bell-style none'\n")
			d.say("complete -W 'alpha beta' wrapped; . " + completionFile(t, "retryx.bash") + "; echo en''d\n")
			d.until("end\n")
			for _, tt := range tabs() {
				if !with && strings.Contains(tt.line, "wrapped ") {
					continue // only the package can ask another command's completion
				}
				if !t.Run(tt.name, func(t *testing.T) { d.ask(t, tt.line, "\t", tt.want, tt.never) }) {
					break // the shell's line is in an unknown state
				}
			}
		})
	}
}

// TestCompletionInOldBash: bash 3.2 of macOS has no compopt, with which a word is
// kept open; there no word gets a blank.
func TestCompletionInOldBash(t *testing.T) {
	t.Parallel()
	c := exec.Command(wantShell(t, "bash"), "--norc", "--noprofile", "-c", "enable -n compopt; . "+completionFile(t, "retryx.bash")+"; complete -p retryx")
	out, err := c.CombinedOutput()
	const want = "complete -o default -o nospace -F __retryx_complete retryx\n"
	got := strings.Replace(string(out), "-o nospace -o default", "-o default -o nospace", 1)
	if err != nil || got != want {
		t.Errorf("complete -p retryx = %q, %v, want %q", out, err, want)
	}
}

func TestCompletionInZsh(t *testing.T) {
	t.Parallel()
	shell := wantShell(t, "zsh")
	home, environ := shellHome(t)
	d := converse(t, environ, filepath.Join(home, "cwd"), shell, "-f", "-i")
	d.say("PS1='$ '; LISTMAX=0; setopt no_beep no_always_last_prompt; bindkey -e; fpath=(" + filepath.Dir(completionFile(t, "_retryx")) + " $fpath)\n")
	d.say("autoload -Uz compinit; compinit -u -d $HOME/dump; _wrapped() { compadd alpha beta }; compdef _wrapped wrapped; echo en''d\n")
	d.until("end\n")
	for _, tt := range tabs() {
		if !t.Run(tt.name, func(t *testing.T) { d.ask(t, tt.line, "\t", tt.want, tt.never) }) {
			break
		}
	}
}

func TestCompletionInFish(t *testing.T) {
	t.Parallel()
	shell := wantShell(t, "fish")
	home, environ := shellHome(t)
	for _, tt := range tabs() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := exec.Command(shell, "--no-config", "-c",
				"source "+completionFile(t, "retryx.fish")+"; complete -c wrapped -f -a 'alpha beta'; complete -C '"+tt.line+"'")
			c.Env, c.Dir = environ, filepath.Join(home, "cwd")
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("fish: %v\n%s", err, out)
			}
			for _, want := range tt.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("completions of %q = %q, want %q among them", tt.line, out, want)
				}
			}
			if tt.never != "" && strings.Contains(string(out), tt.never) {
				t.Errorf("completions of %q offer %q: %q", tt.line, tt.never, out)
			}
		})
	}
}
