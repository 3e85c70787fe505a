package redisstore_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/retryx/retryx/budget/redisstore"
)

// programs are the servers that the tests run against, if they are installed.
func programs() []string { return []string{"redis-server", "valkey-server"} }

// server is one that a test started.
type server struct {
	socket string
	port   int // 0: only the socket
	args   []string
	cmd    *exec.Cmd
	admin  *redis.Client
}

// startServer starts a server in a directory of its own; it ends with the test.
func startServer(tb testing.TB, args ...string) *server {
	tb.Helper()
	return startProgram(tb, programs()[0], 0, args...)
}

func startProgram(tb testing.TB, program string, port int, args ...string) *server {
	tb.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		tb.Skipf("%s is not installed", program)
	}
	dir, err := os.MkdirTemp("", "rdb") //nolint:usetesting // t.TempDir is too long for a socket
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &server{socket: filepath.Join(dir, "s"), port: port}
	s.args = append([]string{
		path, "--unixsocket", s.socket, "--port", strconv.Itoa(port), "--bind", "127.0.0.1",
		"--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no",
	}, args...)
	s.start(tb)
	tb.Cleanup(func() { s.stop() })
	return s
}

func (s *server) start(tb testing.TB) {
	tb.Helper()
	s.cmd = exec.Command(s.args[0], s.args[1:]...)
	if err := s.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	s.admin = redis.NewClient(&redis.Options{Network: "unix", Addr: s.socket, Protocol: 2, DisableIdentity: true, PoolSize: 4, MaxRetries: -1})
	s.await(tb, func() bool {
		err := s.admin.Ping(context.Background()).Err()
		return err == nil || isReply(err)
	})
}

func isReply(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// await waits for what must happen.
func (s *server) await(tb testing.TB, happened func() bool) {
	tb.Helper()
	const patience = 20 * time.Second
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !happened(); <-tick.C {
		if time.Now().After(deadline) {
			tb.Fatal("the server is not what it should be by now")
		}
	}
}

func (s *server) stop() {
	_ = s.admin.Close()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *server) restart(t *testing.T) {
	t.Helper()
	s.stop()
	s.start(t)
}

// do runs a command as an administrator.
func (s *server) do(t *testing.T, args ...any) any {
	t.Helper()
	got, err := s.admin.Do(context.Background(), args...).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatalf("%v: %v", args, err)
	}
	return got
}

func (s *server) url() string { return "unix://" + s.socket }

func (s *server) open(t *testing.T) *redisstore.Store {
	t.Helper()
	return open(t, s.url(), redisstore.Credentials{})
}

// open opens a store that gives a busy machine time; strict one as it is.
func open(t *testing.T, address string, c redisstore.Credentials) *redisstore.Store {
	t.Helper()
	store := strict(t, address, c)
	store.Patient()
	return store
}

func strict(t *testing.T, address string, c redisstore.Credentials) *redisstore.Store {
	t.Helper()
	store, err := redisstore.Open(address, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	return store
}

// freePort returns a port that was free a moment ago, low enough for the bus
// of a cluster, which listens 10000 higher.
func freePort(t *testing.T) int {
	t.Helper()
	for {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if port < 55000 {
			return port
		}
	}
}
