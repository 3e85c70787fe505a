package redisstore_test

import (
	"bytes"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// proxy stands between a client and a server, on a loopback port. What it does
// to the replies of scripts is set while it runs.
type proxy struct {
	listener net.Listener
	backend  atomic.Value // string, a socket
	// cut is how many replies of scripts are dropped together with their
	// connection, after the server has decided.
	cut atomic.Int64
	// hold keeps every reply of a script back until the test ends.
	hold atomic.Bool
	// delay is waited before every reply, in nanoseconds.
	delay atomic.Int64
	// asked counts scripts, dialled connections.
	asked, dialled atomic.Int64

	done  chan struct{}
	mu    sync.Mutex
	conns []net.Conn
	wg    sync.WaitGroup
}

func startProxy(t *testing.T, backend string, secured *tls.Config) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if secured != nil {
		l = tls.NewListener(l, secured)
	}
	p := &proxy{listener: l, done: make(chan struct{})}
	p.backend.Store(backend)
	p.wg.Go(p.accept)
	t.Cleanup(p.stop)
	return p
}

func (p *proxy) host() string { return p.listener.Addr().String() }
func (p *proxy) url() string  { return "redis://" + p.host() }

func (p *proxy) stop() {
	close(p.done)
	_ = p.listener.Close()
	p.mu.Lock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *proxy) keep(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, c)
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.dialled.Add(1)
		p.keep(client)
		server, err := net.Dial("unix", p.backend.Load().(string))
		if err != nil {
			_ = client.Close()
			continue
		}
		p.keep(server)
		var script atomic.Bool
		p.wg.Go(func() { p.forward(client, server, &script) })
		p.wg.Go(func() { p.back(server, client, &script) })
	}
}

// forward passes requests on and notes that the next reply is a script's.
func (p *proxy) forward(client, server net.Conn, script *atomic.Bool) {
	defer server.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if n > 0 {
			if bytes.Contains(buffer[:n], []byte("\r\nevalsha\r\n")) || bytes.Contains(buffer[:n], []byte("\r\neval\r\n")) {
				script.Store(true)
				p.asked.Add(1)
			}
			if _, werr := server.Write(buffer[:n]); werr != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// back passes replies on.
func (p *proxy) back(server, client net.Conn, script *atomic.Bool) {
	defer client.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		select {
		case <-p.done:
			return
		case <-time.After(time.Duration(p.delay.Load())):
		}
		if script.Swap(false) {
			if p.hold.Load() {
				<-p.done
				return
			}
			if p.cut.Add(-1) >= 0 {
				return
			}
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// fake answers every request on a loopback port with the same bytes.
func fake(t *testing.T, answer string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); wg.Wait() })
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				buffer := make([]byte, 64<<10)
				for {
					if _, err := c.Read(buffer); err != nil {
						return
					}
					if answer == "" {
						continue
					}
					if _, err := c.Write([]byte(answer)); err != nil {
						return
					}
				}
			})
		}
	})
	return "redis://" + l.Addr().String()
}
