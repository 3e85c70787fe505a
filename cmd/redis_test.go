package cmd_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// machine is a home of its own: what a host of a fleet is.
type machine struct {
	t    *testing.T
	home string
	env  []string
}

func newMachine(t *testing.T, store string, more ...string) machine {
	t.Helper()
	home := t.TempDir()
	if err := os.Chmod(home, 0o700); err != nil {
		t.Fatal(err)
	}
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH")}
	if store != "" {
		env = append(env, "RETRYX_BUDGET_STORE="+store)
	}
	return machine{t, home, append(env, more...)}
}

// said is how a run ended and what it wrote.
type said struct {
	status         int
	stdout, stderr string
	outcome        map[string]any
}

func (m machine) retryx(args ...string) said {
	m.t.Helper()
	c := exec.CommandContext(m.t.Context(), "retryx", args...)
	c.Env, c.Dir = m.env, m.home
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		m.t.Fatal(err)
	}
	s := said{status: c.ProcessState.ExitCode(), stdout: stdout.String(), stderr: stderr.String()}
	lines := strings.Split(strings.TrimSpace(s.stderr), "\n")
	if last := lines[len(lines)-1]; strings.HasPrefix(last, `{"schema":"retryx.outcome/v1"`) {
		if err := json.Unmarshal([]byte(last), &s.outcome); err != nil {
			m.t.Fatal(err)
		}
		schema, err := outcomeSchema()
		if err != nil {
			m.t.Fatal(err)
		}
		if err := schema.Validate(any(s.outcome)); err != nil {
			m.t.Error(err)
		}
	}
	return s
}

// failing runs what always fails, without waiting between attempts.
func (m machine) failing(attempts int, flags ...string) said {
	m.t.Helper()
	args := append([]string{"-n", strconv.Itoa(attempts), "--delay", "1ms", "--max-delay", "1ms"}, flags...)
	return m.retryx(append(args, "--", "flaky", "exit=7")...)
}

func (s said) want(t *testing.T, fields map[string]string) {
	t.Helper()
	for name, want := range fields {
		if got := field(s.outcome, name); got != want {
			t.Errorf("outcome %s = %q, want %q\n%s", name, got, want, s.stderr)
		}
	}
}

// startRedis starts a server on a loopback port; it ends with the test.
func startRedis(t *testing.T, args ...string) (address string) {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		t.Skip("redis-server is not installed")
	}
	port := strconv.Itoa(closedPort(t))
	c := exec.Command(path, append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir()}, args...)...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		if conn, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = conn.Close()
			return "127.0.0.1:" + port
		}
		if time.Now().After(deadline) {
			t.Fatal("redis-server does not listen")
		}
	}
}

// closedPort returns a port on which nobody listens.
func closedPort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// A fleet shares a budget, whatever its machines keep of their own.
func TestRedisFleetSharesABudget(t *testing.T) {
	t.Parallel()
	store := "redis://" + startRedis(t)
	if s := newMachine(t, store).retryx("budget", "set", "svc", "--capacity", "5", "--refill", "0"); s.status != 0 || !strings.Contains(s.stdout, `made budget "svc"`) {
		t.Fatalf("budget set = %d, %s%s", s.status, s.stdout, s.stderr)
	}
	var granted []string
	for range 4 {
		m := newMachine(t, store)
		s := m.failing(3, "-b", "svc")
		s.want(t, map[string]string{"budgets.0.store": "redis", "budgets.0.policy": "null", "warnings": "[]"})
		granted = append(granted, field(s.outcome, "budgets.0.granted"))
		if _, err := os.Stat(filepath.Join(m.home, ".local/state/retryx/budgets")); err == nil {
			t.Error("a machine keeps budgets of its own")
		}
	}
	if got := strings.Join(granted, " "); got != "2 2 1 0" {
		t.Errorf("four machines got %s retries, want 2 2 1 0 of 5 tokens", got)
	}
	m := newMachine(t, store)
	for _, c := range []struct{ args, want string }{
		{"budget list", "svc   0 of 5  0/s     0.1    5        2       closed   -"},
		{"budget show svc", "record    " + store},
		{"budget reset svc", `budget "svc" holds 5 of 5 tokens again`},
		{"budget show svc", "5 granted, 2 denied, 0 refunded"},
	} {
		if s := m.retryx(strings.Fields(c.args)...); s.status != 0 || !strings.Contains(s.stdout, c.want) {
			t.Errorf("%s = %d, want %q in\n%s%s", c.args, s.status, c.want, s.stdout, s.stderr)
		}
	}
	if s := m.retryx("budget", "show", "other"); s.status == 0 || !strings.Contains(s.stderr, "there is svc") {
		t.Errorf("budget show other = %d, %s, want it to name svc", s.status, s.stderr)
	}
}

// So it does with the budget of a run, and with a breaker.
func TestRedisRunBudgetAndBreaker(t *testing.T) {
	t.Parallel()
	store := "redis://" + startRedis(t)
	var granted []string
	for range 3 {
		s := newMachine(t, store).failing(3, "-b", "svc", "--run-budget", "3", "--run-id", "nightly")
		s.want(t, map[string]string{"budgets.0.name": "run:nightly", "budgets.1.name": "svc"})
		granted = append(granted, field(s.outcome, "budgets.0.granted"))
	}
	if got := strings.Join(granted, " "); got != "2 1 0" {
		t.Errorf("three machines got %s retries of the run's 3, want 2 1 0", got)
	}
	breaker := []string{"-b", "probed", "--breaker", "--breaker-threshold", "1"}
	newMachine(t, store).failing(1, breaker...).want(t, map[string]string{"reason": "attempts_exhausted", "breaker.state": "open"})
	s := newMachine(t, store).failing(1, breaker...)
	s.want(t, map[string]string{"reason": "circuit_open", "attempt_count": "0"})
	if s.status != 75 {
		t.Errorf("an open breaker ended with %d, want 75", s.status)
	}
	m, layers := newMachine(t, store), strings.Fields("-q -n 1 --breaker -b deep -- retryx -q -n 1 --breaker -- flaky exit=7")
	for _, failures := range []string{"1", "2"} { // one of the leaf is one for all layers
		m.retryx(layers...).want(t, map[string]string{"breaker.failures": failures, "breaker.state": "closed"})
	}
}

// A dead server never stops a first attempt; what it does to retries is the
// policy, which is named.
func TestRedisDead(t *testing.T) {
	t.Parallel()
	store := "redis://127.0.0.1:" + strconv.Itoa(closedPort(t))
	for _, c := range []struct {
		policy string
		want   map[string]string
	}{
		{"", map[string]string{
			"attempt_count": "4", "reason": "budget_denied", "budgets.0.policy": "fallback", "budgets.0.store": "file",
			"budgets.0.granted": "3", "budgets.0.denied": "1", "budgets.0.capacity": "3",
		}},
		{"closed", map[string]string{"attempt_count": "1", "reason": "budget_unavailable", "budgets.0.policy": "closed", "budgets.0.store": "redis"}},
		{"local", map[string]string{"attempt_count": "2", "reason": "budget_denied", "budgets.0.policy": "local", "budgets.0.store": "memory"}},
		{"open", map[string]string{"attempt_count": "6", "reason": "attempts_exhausted", "budgets.0.policy": "open"}},
	} {
		t.Run("policy "+c.policy, func(t *testing.T) {
			m := newMachine(t, store)
			flags := []string{"-b", "svc"}
			if c.policy != "" {
				flags = append(flags, "--budget-on-error", c.policy)
			}
			s := m.failing(6, flags...)
			s.want(t, c.want)
			if warnings := field(s.outcome, "warnings"); !strings.Contains(warnings, "refuses connections") || s.status != 7 {
				t.Errorf("it ended with %d and warned %s, want 7 and why the server was not asked", s.status, warnings)
			}
			if c.policy != "" {
				return
			}
			// What the machine's record has paid is gone for its other runs, too.
			m.failing(6, flags...).want(t, map[string]string{"attempt_count": "1", "reason": "budget_denied", "budgets.0.policy": "fallback"})
		})
	}
	m := newMachine(t, store)
	if s := m.retryx("--", "true"); s.status != 0 || strings.Count(s.stderr, "\n") > 1 {
		t.Errorf("a success with a dead server = %d, %s, want 0 and no lines but the outcome", s.status, s.stderr)
	}
	if s := m.retryx("budget", "list"); s.status == 0 || !strings.Contains(s.stderr, store+": it refuses connections") {
		t.Errorf("budget list = %d, %s, want an error that names the server", s.status, s.stderr)
	}
}

// A password is nowhere but in the environment.
func TestRedisPasswordStaysSecret(t *testing.T) {
	t.Parallel()
	const secret = "hunter2hunter2"
	host := startRedis(t, "--requirepass", "another-password")
	file := filepath.Join(t.TempDir(), "password")
	if err := os.WriteFile(file, []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]machine{
		"address":  newMachine(t, "redis://:"+secret+"@"+host),
		"variable": newMachine(t, "redis://"+host, "RETRYX_REDIS_PASSWORD="+secret),
		"file":     newMachine(t, "redis://"+host, "RETRYX_REDIS_PASSWORD_FILE="+file),
		"dead":     newMachine(t, "redis://u:"+secret+"@127.0.0.1:1"),
	} {
		t.Run(name, func(t *testing.T) {
			all := ""
			for _, args := range [][]string{
				{"-n", "3", "--delay", "1ms", "-b", "svc", "-v", "--", "sh", "-c", `tr '\0' ' ' </proc/$PPID/cmdline >&2; exit 7`},
				{"-b", "svc", "--", "true"},
				{"plan", "-b", "svc", "--", "true"},
				{"budget", "list"},
				{"budget", "show", "svc"},
				{"budget", "set", "svc", "--capacity", "3"},
				{"config", "show"},
			} {
				s := m.retryx(args...)
				all += s.stdout + s.stderr
			}
			if strings.Contains(all, secret) {
				t.Errorf("the password was written:\n%s", all)
			}
			if name != "dead" && !strings.Contains(all, "the login was refused") {
				t.Errorf("nothing was said about the password that is wrong:\n%s", all)
			}
			if files := grep(t, m.home, secret); len(files) > 0 {
				t.Errorf("the password is kept in %q", files)
			}
		})
	}
	m := newMachine(t, "")
	if s := m.failing(2, "--budget-store", "redis://:"+secret+"@"+host); s.status != 125 || strings.Contains(s.stderr, secret) || !strings.Contains(s.stderr, "RETRYX_REDIS_PASSWORD") {
		t.Errorf("a password on the command line = %d, %s, want 125 and where to put it", s.status, s.stderr)
	}
	m = newMachine(t, "redis://"+host, "RETRYX_REDIS_PASSWORD=another-password")
	m.failing(2, "-b", "svc").want(t, map[string]string{"budgets.0.store": "redis", "budgets.0.granted": "1"})
}

// grep returns the files under dir that have the text.
func grep(t *testing.T, dir, text string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
