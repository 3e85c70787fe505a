package cmd_test

import (
	"archive/zip"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// Servers that are real, or real enough for a client to succeed in the end.

// wheelAfter gives the statuses one after another and then a package for pip.
func wheelAfter(statuses ...int) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		wheel := emptyWheel(t)
		var asked atomic.Int64
		return served(t, func(w http.ResponseWriter, _ *http.Request) {
			if n := int(asked.Add(1)); n <= len(statuses) {
				w.WriteHeader(statuses[n-1])
				return
			}
			_, _ = w.Write(wheel)
		})
	}
}

func emptyWheel(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, f := range [][2]string{
		{"METADATA", "Metadata-Version: 2.1\nName: x\nVersion: 1.0\n"},
		{"WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{"RECORD", "x-1.0.dist-info/METADATA,,\nx-1.0.dist-info/WHEEL,,\nx-1.0.dist-info/RECORD,,\n"},
	} {
		w, err := z.Create("x-1.0.dist-info/" + f[0])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(f[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// aptAfter gives each run of apt-get one of the statuses, whatever it asks for,
// and then an empty flat repository. A run begins with the question for
// InRelease.
func aptAfter(statuses ...int) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		var runs atomic.Int64
		return served(t, func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/InRelease") {
				runs.Add(1)
			}
			run := int(runs.Load())
			switch {
			case run <= len(statuses):
				w.WriteHeader(statuses[max(run, 1)-1])
			case strings.HasSuffix(r.URL.Path, "/Packages"):
			default:
				w.WriteHeader(http.StatusNotFound)
			}
		})
	}
}

// rsyncAfter refuses some connections for want of room and hands the others to
// a real rsync daemon.
func rsyncAfter(refused int) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		dir := t.TempDir()
		text := fmt.Sprintf("use chroot = no\nlog file = /dev/null\n[m]\npath = %s\nread only = no\n", dir)
		if os.Getuid() == 0 { // else it would become nobody; any other user may not set a group at all
			text = "uid = 0\ngid = 0\n" + text
		}
		config := written(t, dir, "rsyncd.conf", text)
		return accepted(t, func(c net.Conn, n int) {
			if n <= refused {
				refuseRsync(c, "max connections (2) reached -- try again later")
				return
			}
			inetd(c, "rsync", "--daemon", "--config="+config)
		})
	}
}

// sshServer is a real sshd that closes the first connections at once. It lets
// in whoever has the key {peer}/key, nobody unless told so.
func sshServer(closed int, open bool) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		sshd, err := exec.LookPath("/usr/sbin/sshd")
		if err != nil {
			t.Skip("no sshd on this machine")
		}
		if _, err := os.Stat("/run/sshd"); err != nil && os.Getuid() == 0 {
			t.Skip("sshd was never started on this machine: ", err)
		}
		if shell := loginShell(); open && (strings.HasSuffix(shell, "/nologin") || strings.HasSuffix(shell, "/false")) {
			t.Skip("sshd lets nobody in whose shell is ", shell)
		}
		dir := t.TempDir()
		for _, name := range []string{"host", "key"} {
			if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, name)).CombinedOutput(); err != nil {
				t.Fatalf("ssh-keygen: %v: %s", err, out)
			}
		}
		keys := "none"
		if open {
			keys = dir + "/key.pub"
		}
		config := written(t, dir, "sshd_config", strings.Join([]string{
			"HostKey " + dir + "/host", "AuthorizedKeysFile " + keys, "StrictModes no", "UsePAM no", "PidFile none",
			"PasswordAuthentication no", "KbdInteractiveAuthentication no", "LogLevel QUIET", "",
		}, "\n"))
		p := accepted(t, func(c net.Conn, n int) {
			if n > closed {
				inetd(c, sshd, "-i", "-f", config)
			}
		})
		p.files = dir
		return p
	}
}

// loginShell is our user's, empty where the system keeps it elsewhere.
func loginShell() string {
	users, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(users)) {
		if entry := strings.Split(strings.TrimSpace(line), ":"); len(entry) == 7 && entry[2] == strconv.Itoa(os.Getuid()) {
			return entry[6]
		}
	}
	return ""
}

// inetd runs a server on a connection, as the super-server would, until it ends.
func inetd(c net.Conn, program string, args ...string) {
	tcp, ok := c.(*net.TCPConn)
	if !ok {
		return
	}
	f, err := tcp.File()
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	_ = c.Close()                         // the server's copy is the only one, so that its end is the end
	run := exec.Command(program, args...) //nolint:noctx // it ends with the connection
	run.Stdin, run.Stdout = f, f
	_ = run.Run()
}

// postgresAfter is a server that is starting up for some connections and then
// has an empty answer to everything.
func postgresAfter(starting int) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		return accepted(t, func(c net.Conn, n int) {
			if !postgresStart(c) {
				return
			}
			if n <= starting {
				_, _ = c.Write([]byte(postgresMessage('E', "SFATAL\x00C57P03\x00Mthe database system is starting up\x00\x00")))
				return
			}
			ready := postgresMessage('Z', "I")
			_, _ = c.Write([]byte(postgresMessage('R', "\x00\x00\x00\x00") + ready))
			for postgresQuery(c) {
				_, _ = c.Write([]byte(postgresMessage('C', "SELECT 0\x00") + ready))
			}
		})
	}
}

// content returns what writes a file into the directory of a case.
func content(name, text string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		t.Helper()
		written(t, dir, name, text)
	}
}

// repository makes {dir}/r a repository with one commit.
func repository(t *testing.T, dir string) {
	t.Helper()
	git := []string{"--git-dir", filepath.Join(dir, "r"), "-c", "user.name=x", "-c", "user.email=x@example.org"}
	for _, args := range [][]string{{"init", "-q"}, {"--work-tree", dir, "commit", "-q", "--allow-empty", "-m", "x"}} {
		run := exec.CommandContext(t.Context(), "git", append(append([]string{}, git...), args...)...)
		run.Env = clientEnv(dir)
		if out, err := run.CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
}

func written(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// myself is the name of the user that runs the tests.
func myself() string {
	u, err := user.Current()
	if err != nil {
		return "nobody"
	}
	return u.Username
}
