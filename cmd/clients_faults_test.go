package cmd_test

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// The faults that clients meet in clients_test.go, all on the loopback.

// answers gives the statuses one after another, the last one from then on.
func answers(statuses ...int) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		var asked atomic.Int64
		return served(t, func(w http.ResponseWriter, _ *http.Request) {
			n := min(int(asked.Add(1)), len(statuses))
			answer(w, statuses[n-1])
		})
	}
}

// answer is one that every client here is content with: a package's metadata,
// which git takes for a list without refs.
func answer(w http.ResponseWriter, status int) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
	}
	w.WriteHeader(status)
	if status == http.StatusOK {
		_, _ = io.WriteString(w, `{"name":"x","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"x","version":"1.0.0"}}}`)
	}
}

// resets breaks the first connections once the request was read, then answers.
func resets(times, status int) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		var asked atomic.Int64
		return served(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if int(asked.Add(1)) > times {
				answer(w, status)
				return
			}
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			breakOff(conn)
		})
	}
}

func served(t *testing.T, handler http.HandlerFunc) *peer {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	return &peer{address: s.Listener.Addr().String()}
}

// breakOff closes a connection so that the other side sees a reset.
func breakOff(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// refuses is an address at which nobody listens.
func refuses(t *testing.T) *peer {
	t.Helper()
	l := listen(t)
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return &peer{address: address}
}

// hangs accepts and never says anything.
func hangs(t *testing.T) *peer {
	t.Helper()
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	return accepted(t, func(net.Conn, int) { <-done })
}

// says greets the first connections with a text and closes them.
func says(text string, times int) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		return accepted(t, func(c net.Conn, n int) {
			if n <= times {
				_, _ = io.WriteString(c, text)
			}
		})
	}
}

// daemonSays is an rsync daemon that refuses.
func daemonSays(reason string) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		return accepted(t, func(c net.Conn, _ int) { refuseRsync(c, reason) })
	}
}

func refuseRsync(c net.Conn, reason string) {
	_, _ = io.WriteString(c, "@RSYNCD: 31.0\n")
	in := bufio.NewReader(c)
	for range 2 { // its version, the module
		if _, err := in.ReadString('\n'); err != nil {
			return
		}
	}
	_, _ = io.WriteString(c, "@ERROR: "+reason+"\n")
}

// readsAndBreaks reads what the client sends and breaks the connection.
func readsAndBreaks(t *testing.T) *peer {
	t.Helper()
	return accepted(t, func(c net.Conn, _ int) {
		_, _ = c.Read(make([]byte, 1))
		breakOff(c)
	})
}

// redisSays is a Redis that answers every command of the first connections with
// a line, of later ones with PONG.
func redisSays(line string, times int) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		return accepted(t, func(c net.Conn, n int) {
			in := bufio.NewReader(c)
			for {
				head, err := in.ReadString('\n')
				if err != nil {
					return
				}
				if !strings.HasPrefix(head, "*") { // a word of the command
					continue
				}
				reply := "+PONG"
				if n <= times {
					reply = line
				}
				_, _ = io.WriteString(c, reply+"\r\n")
			}
		})
	}
}

// postgres is a server that lets everybody in, unless severity is FATAL, and
// answers every query with an error; without a severity it breaks off when it
// has read the query.
func postgres(severity, code, message string) func(*testing.T) *peer {
	return func(t *testing.T) *peer {
		t.Helper()
		failure := postgresMessage('E', "S"+severity+"\x00C"+code+"\x00M"+message+"\x00\x00")
		ready := postgresMessage('Z', "I")
		return accepted(t, func(c net.Conn, _ int) {
			if !postgresStart(c) {
				return
			}
			if severity == "FATAL" {
				_, _ = io.WriteString(c, failure)
				return
			}
			_, _ = io.WriteString(c, postgresMessage('R', "\x00\x00\x00\x00")+ready)
			if !postgresQuery(c) {
				return
			}
			if severity == "" {
				breakOff(c)
				return
			}
			_, _ = io.WriteString(c, failure+ready)
			_, _ = io.Copy(io.Discard, c)
		})
	}
}

func postgresMessage(kind byte, body string) string {
	const lengthSize = 4
	length := binary.BigEndian.AppendUint32(nil, uint32(len(body)+lengthSize))
	return string(kind) + string(length) + body
}

// postgresStart reads start-up packets until the one that names the user, and
// declines encryption.
func postgresStart(c net.Conn) bool {
	const protocol3 = 3 << 16
	for {
		body, ok := postgresBody(c)
		if !ok || len(body) < 4 {
			return false
		}
		if binary.BigEndian.Uint32(body) == protocol3 {
			return true
		}
		if _, err := io.WriteString(c, "N"); err != nil {
			return false
		}
	}
}

func postgresQuery(c net.Conn) bool {
	kind := make([]byte, 1)
	if _, err := io.ReadFull(c, kind); err != nil {
		return false
	}
	_, ok := postgresBody(c)
	return ok && kind[0] == 'Q'
}

func postgresBody(c net.Conn) ([]byte, bool) {
	const lengthSize, longest = 4, 1 << 16
	head := make([]byte, lengthSize)
	if _, err := io.ReadFull(c, head); err != nil {
		return nil, false
	}
	n := binary.BigEndian.Uint32(head)
	if n < lengthSize || n > longest {
		return nil, false
	}
	body := make([]byte, n-lengthSize)
	_, err := io.ReadFull(c, body)
	return body, err == nil
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// accepted serves every connection, which is closed afterwards; n counts them.
func accepted(t *testing.T, serve func(c net.Conn, n int)) *peer {
	t.Helper()
	l := listen(t)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for n := 1; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				serve(c, n)
			}()
		}
	}()
	return &peer{address: l.Addr().String()}
}
