package proc_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/retryx/retryx/exec/proc"
)

func TestExitStatus(t *testing.T) { // scenario 24
	for _, test := range []struct {
		script string
		code   int
		signal syscall.Signal
	}{
		{"exit 0", 0, 0},
		{"exit 3", 3, 0},
		{"exit 124", 124, 0},
		{"exit 255", 255, 0},
		{"kill -KILL $$", -1, syscall.SIGKILL},
		{"kill -SEGV $$", -1, syscall.SIGSEGV},
		{"kill -ABRT $$", -1, syscall.SIGABRT},
		{"kill -PIPE $$", -1, syscall.SIGPIPE},
	} {
		for _, group := range []proc.Group{proc.Shared, proc.New} {
			got := run(t, proc.Spec{Argv: []string{"/bin/sh", "-c", "ulimit -c 0; " + test.script}, Group: group})
			if got.Code != test.code || got.Signal != test.signal || got.WaitErr != nil {
				t.Errorf("run(%q) = code %d, signal %v, %v, want %d, %v, nil",
					test.script, got.Code, got.Signal, got.WaitErr, test.code, test.signal)
			}
		}
	}
}

func TestStartErrors(t *testing.T) { // scenarios 72 and 73
	t.Setenv("PATH", "/bin:/usr/bin") // a closed directory in it would be the answer
	dir := t.TempDir()
	script := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	script("plain", "echo hi\n", 0o644)
	crlf := script("crlf", "#!/bin/sh\r\nexit 0\r\n", 0o755)
	gone := script("gone", "#! /no/such/interpreter -x\n", 0o755)
	foreign := script("foreign", "\x7fELF\x01\x00\x00", 0o755)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))

	for _, test := range []struct {
		argv        []string
		status      int
		err         error
		interpreter string
	}{
		{nil, 127, syscall.ENOENT, ""},
		{[]string{""}, 127, syscall.ENOENT, ""},
		{[]string{"no-such-command"}, 127, syscall.ENOENT, ""},
		{[]string{"/no/such/command"}, 127, syscall.ENOENT, ""},
		{[]string{"/dev/null/x"}, 127, syscall.ENOTDIR, ""},
		{[]string{dir}, 126, syscall.EISDIR, ""},
		{[]string{"plain"}, 126, syscall.EACCES, ""},
		{[]string{dir + "/plain"}, 126, syscall.EACCES, ""},
		{[]string{gone}, 127, syscall.ENOENT, "/no/such/interpreter"},
		{[]string{crlf}, 127, syscall.ENOENT, "/bin/sh\r"},
		{[]string{foreign}, 126, syscall.ENOEXEC, ""},
		{[]string{"/bin/echo", "a\x00b"}, 126, syscall.EINVAL, ""},
		{[]string{"/bin/echo", strings.Repeat("x", 1<<22)}, 126, syscall.E2BIG, ""},
	} {
		_, err := proc.Start(proc.Spec{Argv: test.argv})
		var start *proc.StartError
		if !errors.As(err, &start) {
			t.Errorf("Start(%.40q) = %v, want a StartError", test.argv, err)
			continue
		}
		if start.Status() != test.status || !errors.Is(err, test.err) || start.Transient() ||
			start.Interpreter != test.interpreter {
			t.Errorf("Start(%.40q) = %v (status %d, transient %v, interpreter %q), want %v (%d, false, %q)",
				test.argv, err, start.Status(), start.Transient(), start.Interpreter,
				test.err, test.status, test.interpreter)
		}
	}
}

func TestTransientStartErrors(t *testing.T) { // scenario 73
	for errno, want := range map[syscall.Errno]bool{
		syscall.EAGAIN: true, syscall.ENOMEM: true, syscall.EMFILE: true, syscall.ENFILE: true,
		syscall.ETXTBSY: true, syscall.ENOENT: false, syscall.EACCES: false, syscall.E2BIG: false,
	} {
		err := &proc.StartError{Err: os.NewSyscallError("fork", errno)}
		if got := err.Transient(); got != want {
			t.Errorf("Transient(%v) = %v, want %v", errno, got, want)
		}
	}
}

func TestBusyProgram(t *testing.T) { // scenario 73
	text, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Skip(err)
	}
	path := filepath.Join(t.TempDir(), "busy")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(text); err != nil {
		t.Fatal(err)
	}
	p, err := proc.Start(proc.Spec{Argv: []string{path}})
	if err == nil {
		finish(t, p)
		t.Skip("this system executes files that are being written")
	}
	var start *proc.StartError
	if !errors.As(err, &start) || !start.Transient() {
		t.Errorf("Start(a file being written) = %v, want a transient StartError", err)
	}
}

func TestDescriptorsUsedUp(t *testing.T) { // scenario 73
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	low := limit
	low.Cur = 1
	for range null.Fd() {
		low.Cur++ // its type differs between systems
	}
	spec := helper("exit:0")
	spec.Stderr.Tee = true
	// No descriptor may be opened while the limit is low, by this test or
	// another: there are no parallel tests in this package.
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	_, err = proc.Start(spec)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	var start *proc.StartError
	if !errors.As(err, &start) || !start.Transient() || !errors.Is(err, syscall.EMFILE) {
		t.Errorf("Start with no descriptor left = %v, want a transient StartError with EMFILE", err)
	}
	if got := run(t, spec); got.Code != 0 {
		t.Errorf("code afterwards = %d, want 0", got.Code)
	}
}

func TestScriptWithoutInterpreter(t *testing.T) { // scenario 72
	dir := t.TempDir()
	for name, text := range map[string]string{"text": "exit $#\n", "empty": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	for _, test := range []struct {
		argv []string
		code int
	}{
		{[]string{dir + "/text", "a", "b c"}, 2},
		{[]string{"text", "a"}, 1},
		{[]string{"empty"}, 0},
	} {
		if got := run(t, proc.Spec{Argv: test.argv}); got.Code != test.code {
			t.Errorf("run(%q) = %d, want %d", test.argv, got.Code, test.code)
		}
	}
}

func TestPath(t *testing.T) { // scenario 72
	dir := t.TempDir()
	for name, code := range map[string]string{"one/tool": "1", "two/tool": "2", "here": "3"} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\nexit "+code+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(dir+"/two/here", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/one/here", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	for _, test := range []struct {
		path, name string
		code       int
	}{
		{dir + "/one:" + dir + "/two", "tool", 1},
		{dir + "/two:" + dir + "/one", "tool", 2},
		{"no/where:two", "tool", 2},
		{".", "here", 3},
		{"", "here", 0}, // an empty PATH has no entries for us
		{dir + "/one:", "here", 3},
		{dir + "/two:" + dir + "/one:" + dir, "here", 3}, // a directory and a plain file come first
	} {
		t.Setenv("PATH", test.path)
		p, err := proc.Start(proc.Spec{Argv: []string{test.name}})
		if test.code == 0 {
			if err == nil {
				finish(t, p)
				t.Errorf("Start(%q) with PATH %q worked, want an error", test.name, test.path)
			}
			continue
		}
		if err != nil {
			t.Errorf("Start(%q) with PATH %q: %v", test.name, test.path, err)
			continue
		}
		if got := finish(t, p); got.Code != test.code {
			t.Errorf("run(%q) with PATH %q = %d, want %d", test.name, test.path, got.Code, test.code)
		}
	}
}

func TestPathUnset(t *testing.T) {
	t.Setenv("PATH", "") // restored after the test
	os.Unsetenv("PATH")
	if got := run(t, proc.Spec{Argv: []string{"sh", "-c", "exit 4"}}); got.Code != 4 {
		t.Errorf("run(sh) without PATH = %d, want 4", got.Code)
	}
}

func TestArgumentsVerbatim(t *testing.T) { // scenario 75
	argv := []string{"-odd name", "args:", "out:", "out:\xff\x01", "out:" + strings.Repeat("y", 100_000), "out:a\tb *$'\""}
	spec := helper()
	dir := t.TempDir()
	if err := os.Symlink(self(), dir+"/-odd name"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	spec.Argv = argv
	spec.Stdout.Spool = new(proc.Spool)
	if got := run(t, spec); got.Code != 0 {
		t.Fatalf("code = %d, want 0", got.Code)
	}
	var text strings.Builder
	if _, err := spec.Stdout.Spool.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	line, _, _ := strings.Cut(text.String(), "\n")
	if diff := cmp.Diff(quoted(argv), line); diff != "" {
		t.Errorf("arguments differ (-want +got):\n%s", diff)
	}
}

func TestEnvironmentVerbatim(t *testing.T) {
	spec := proc.Spec{Argv: []string{"/usr/bin/env"}, Env: []string{"A=1", "B=two words", "EMPTY="}}
	spec.Stdout.Tee = true
	if got, want := string(run(t, spec).Stdout), "A=1\nB=two words\nEMPTY=\n"; got != want {
		t.Errorf("environment = %q, want %q", got, want)
	}
}
