package proc_test

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/retryx/retryx/exec/proc"
)

// The children of these tests are this very binary, told by helperEnv to carry
// out its arguments as steps. All of them hold the read end of one pipe whose
// write end is the test's alone: they end with the test, whatever happens.
const (
	helperEnv  = "RETRYX_PROC_HELPER"
	controlEnv = "RETRYX_PROC_CONTROL"

	// patience is how long a test waits for what must come. It is no bound
	// that is asserted, only the end of a hang.
	patience = 20 * time.Second
)

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		go dieWithTest()
		for _, step := range os.Args[1:] {
			perform(step)
		}
		os.Exit(0)
	}
	control, keep, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	fd := control.Fd()
	if _, err := unix.FcntlInt(fd, unix.F_SETFD, 0); err != nil {
		panic(err)
	}
	os.Setenv(controlEnv, strconv.Itoa(int(fd)))
	code := m.Run()
	control.Close()
	keep.Close()
	os.Exit(code)
}

func dieWithTest() {
	fd, err := strconv.Atoi(os.Getenv(controlEnv))
	if err != nil {
		panic(err)
	}
	for {
		if _, err := unix.Read(fd, make([]byte, 1)); !errors.Is(err, unix.EINTR) {
			os.Exit(99)
		}
	}
}

// perform carries out one step, written "verb:argument".
func perform(step string) {
	verb, arg, _ := strings.Cut(step, ":")
	switch verb {
	case "out":
		write(1, []byte(unescape(arg)))
	case "err":
		write(2, []byte(unescape(arg)))
	case "noise": // bytes of random, whose text form goes to no one
		fill(2, number(arg))
	case "hum": // bytes without a newline
		hum(2, number(arg))
	case "exit":
		os.Exit(number(arg))
	case "die":
		signal.Reset()
		_ = syscall.Kill(os.Getpid(), signalNamed(arg))
		select {}
	case "readline":
		if _, err := readByteLine(os.Stdin); err != nil {
			os.Exit(98)
		}
	case "cat":
		_, _ = io.Copy(os.Stdout, os.Stdin)
	case "readn":
		_, _ = io.ReadFull(os.Stdin, make([]byte, number(arg)))
	case "ignore":
		signal.Ignore(signalNamed(arg))
	case "report": // a line for each of these signals, for ever
		report(strings.Split(arg, ","))
	case "quit": // end at the signal with a code: SIG=CODE
		name, code, _ := strings.Cut(arg, "=")
		quit(signalNamed(name), number(code))
	case "spawn", "session": // a child of the child; steps are parted by "|"
		spawn(verb == "session", strings.Split(arg, "|"))
	case "fds":
		listDescriptors()
	case "close":
		_ = unix.Close(number(arg))
	case "args":
		fmt.Println(quoted(os.Args))
	case "pid":
		fmt.Printf("%d\n", os.Getpid())
	case "unprivileged":
		fmt.Println(signalAsNobody())
	case "relay", "nested": // a shell, started through the package, whose code is ours
		os.Exit(relay(arg))
	case "parent":
		becomeParent()
	case "stand":
		fmt.Println(proc.Stand())
	case "group": // a step in a background group of the terminal
		inGroup(arg)
	case "rawkill":
		killRawChild()
	case "restore": // what SaveTerminal returns in the foreground, used behind it
		if err := proc.ForegroundTerminal().Restore(); err != nil {
			panic(err)
		}
		fmt.Println("went on")
	case "nonblock":
		_ = unix.SetNonblock(number(arg), true)
	case "hang":
		select {}
	default:
		write(2, []byte("unknown step "+step+"\n"))
		os.Exit(97)
	}
}

func unescape(s string) string { return strings.ReplaceAll(s, `\n`, "\n") }

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

func signalNamed(name string) syscall.Signal {
	sig := unix.SignalNum("SIG" + name)
	if sig == 0 {
		panic("no signal " + name)
	}
	return sig
}

func write(fd int, b []byte) {
	for len(b) > 0 {
		n, err := unix.Write(fd, b)
		if err != nil && !errors.Is(err, unix.EINTR) {
			os.Exit(96)
		}
		b = b[max(n, 0):]
	}
}

func fill(fd, n int) {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	write(fd, b)
}

func hum(fd, n int) {
	b := []byte(strings.Repeat("x", 1<<16))
	for ; n > 0; n -= len(b) {
		write(fd, b[:min(n, len(b))])
	}
}

func readByteLine(r io.Reader) (string, error) {
	var line []byte
	for b := make([]byte, 1); ; {
		if _, err := r.Read(b); err != nil {
			return string(line), err
		}
		if b[0] == '\n' {
			return string(line), nil
		}
		line = append(line, b[0])
	}
}

// report has one goroutine for all its signals: so a signal sent before another
// one of a higher number is never reported after it.
func report(names []string) {
	c := make(chan os.Signal, 16)
	for _, name := range names {
		signal.Notify(c, signalNamed(name))
	}
	go func() {
		for s := range c {
			write(1, []byte("got "+unix.SignalName(s.(syscall.Signal))+"\n"))
		}
	}()
}

func quit(sig syscall.Signal, code int) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, sig)
	go func() {
		<-c
		write(1, []byte("quit\n"))
		os.Exit(code)
	}()
}

func spawn(session bool, steps []string) {
	attr := &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}}
	attr.Sys = &syscall.SysProcAttr{Setsid: session}
	if _, err := os.StartProcess(self(), append([]string{"helper"}, steps...), attr); err != nil {
		panic(err)
	}
}

func self() string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return path
}

func quoted(list []string) string { return fmt.Sprintf("%q", list) }

func listDescriptors() {
	for fd := range 256 {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil {
			fmt.Printf("%d ", fd)
		}
	}
	fmt.Println()
}

// helper returns a Spec that runs the steps, its stdin and streams on
// /dev/null.
func helper(steps ...string) proc.Spec {
	return proc.Spec{
		Argv: append([]string{self()}, steps...),
		Env:  helperEnviron(),
	}
}

// helperEnviron is the environment that makes this binary a helper. Without the
// second variable each would sleep a second at its end under the race detector.
func helperEnviron() []string {
	return append(os.Environ(), helperEnv+"=1", "GORACE=atexit_sleep_ms=0")
}

// start starts spec and takes care that nothing of it outlives the test.
func start(t *testing.T, spec proc.Spec) *proc.Process {
	t.Helper()
	p, err := proc.Start(spec)
	if err != nil {
		t.Fatalf("Start(%q): %v", spec.Argv, err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Errorf("Kill: %v", err)
		}
		await(t, p.Done(), "end of the child")
		p.KillGroup()
		p.Close()
	})
	return p
}

// finish waits for the end and returns the result.
func finish(t *testing.T, p *proc.Process) proc.Result {
	t.Helper()
	await(t, p.Done(), "end of the child")
	return p.Result()
}

func run(t *testing.T, spec proc.Spec) proc.Result {
	t.Helper()
	return finish(t, start(t, spec))
}

func await(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatalf("no %s within %v", what, patience)
	}
}

// A reader reads lines of a child's output.
type reader struct {
	t     *testing.T
	lines chan string
}

// pipe returns a file to give to a child, which is closed by started, and a
// reader of what comes out of it.
func pipe(t *testing.T) (*os.File, *reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	lines := make(chan string)
	var once sync.Once
	over := make(chan struct{})
	t.Cleanup(func() { once.Do(func() { close(over) }) })
	go func() {
		defer r.Close()
		defer close(lines)
		for scan := bufio.NewScanner(r); scan.Scan(); {
			select {
			case lines <- scan.Text():
			case <-over:
				return
			}
		}
	}()
	return w, &reader{t, lines}
}

// line returns the next line; it fails the test if there is none.
func (r *reader) line() string {
	r.t.Helper()
	select {
	case line, ok := <-r.lines:
		if !ok {
			r.t.Fatal("output ended, want a line")
		}
		return line
	case <-time.After(patience):
		r.t.Fatalf("no line within %v", patience)
	}
	return ""
}

// want reads a line and compares it.
func (r *reader) want(line string) {
	r.t.Helper()
	if got := r.line(); got != line {
		r.t.Fatalf("line = %q, want %q", got, line)
	}
}

// ended fails unless the output ends, and with it every process that held it.
func (r *reader) ended() {
	r.t.Helper()
	select {
	case line, ok := <-r.lines:
		if ok {
			r.t.Fatalf("line = %q, want the end", line)
		}
	case <-time.After(patience):
		r.t.Fatalf("output still open after %v", patience)
	}
}

func temporary(t *testing.T, flags int) *os.File {
	t.Helper()
	file, err := os.OpenFile(t.TempDir()+"/file", os.O_CREATE|os.O_RDWR|flags, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	return file
}

// startRead starts spec with its stdout on a pipe that only its processes hold.
func startRead(t *testing.T, spec proc.Spec) (*proc.Process, *reader) {
	t.Helper()
	w, out := pipe(t)
	spec.Stdout = proc.Sink{File: w}
	p := start(t, spec)
	w.Close()
	return p, out
}

// send signals p and fails the test if that cannot be done.
func send(t *testing.T, p *proc.Process, sig syscall.Signal) {
	t.Helper()
	if err := p.Signal(sig); err != nil {
		t.Fatalf("Signal(%v) = %v, want nil", sig, err)
	}
}

// signalAsNobody starts a child as root, gives root up, and returns what a
// signal to the child then says.
func signalAsNobody() error {
	p, err := proc.Start(helper("hang:"))
	if err != nil {
		return err
	}
	if err := syscall.Setuid(65534); err != nil {
		return err
	}
	return errors.Unwrap(p.Signal(syscall.SIGTERM))
}

// relay runs a script through the package and returns its code.
func relay(script string) int {
	spec := proc.Spec{Argv: []string{"/bin/sh", "-c", script}, Stdin: os.Stdin}
	spec.Stdout.File = os.Stdout
	spec.Stderr = proc.Sink{File: os.Stderr, Tee: true}
	p, err := proc.Start(spec)
	if err != nil {
		return 95
	}
	return p.Result().Code
}

// becomeParent starts a child and stays until it is killed.
func becomeParent() {
	runtime.LockOSThread()
	spec := helper("quit:TERM=0", `out:ready\n`, "hang:")
	spec.Stdout.File = os.Stdout
	p, err := proc.Start(spec)
	if err != nil {
		panic(err)
	}
	fmt.Printf("child %d\n", p.Pid())
	select {}
}

// inGroup starts a helper in a group of its own and waits for it.
func inGroup(step string) {
	spec := helper(step)
	spec.Group = proc.New
	spec.Stdout.File, spec.Stderr.File = os.Stdout, os.Stderr
	p, err := proc.Start(spec)
	if err != nil {
		panic(err)
	}
	if code := p.Result().Code; code != 0 {
		os.Exit(code)
	}
}

// killRawChild kills a child that has made the terminal raw, and restores it.
func killRawChild() {
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	saved := proc.SaveTerminal()
	before := terminalModes()
	spec := proc.Spec{Argv: []string{"/bin/sh", "-c", "stty raw -echo; echo ready; read forever"}, Stdin: os.Stdin}
	spec.Stdout.File = w
	p, err := proc.Start(spec)
	if err != nil {
		panic(err)
	}
	if _, err := readByteLine(r); err != nil {
		panic(err)
	}
	if err := p.Kill(); err != nil {
		panic(err)
	}
	<-p.Done()
	changed := terminalModes() != before
	if err := saved.Restore(); err != nil {
		panic(err)
	}
	fmt.Printf("changed %v\nrestored %v\n", changed, terminalModes() == before)
}

func terminalModes() string {
	spec := proc.Spec{Argv: []string{"stty", "-g"}, Stdin: os.Stdin}
	spec.Stdout.Tee = true
	p, err := proc.Start(spec)
	if err != nil {
		panic(err)
	}
	return string(p.Result().Stdout)
}
