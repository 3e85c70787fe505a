package redisstore

import (
	"context"
	"crypto/sha1" //nolint:gosec // the name of a script, not a secret
	"crypto/tls"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/retryx/retryx/budget"
)

// How long single steps may take. They bound what one silent peer costs; the
// sum is bounded by the operation's own limit.
const (
	dialLimit      = 100 * time.Millisecond
	handshakeLimit = 100 * time.Millisecond
	replyLimit     = 100 * time.Millisecond
	idleLimit      = time.Second // a connection that rested longer may be dead or lead to a server of yesterday
)

// scanned is how many keys the server looks at in one step of a listing.
const scanned = 1000

//go:embed decide.lua
var decide string

// connection is at most one connection to a server, made when it is needed. Its
// client's own repetitions, handshakes and logs are off.
type connection struct {
	script  string
	stretch int    // by how much the limits are longer; 1 but in tests that are not about time
	name    string // the script's, made of it when it is first run
	client  *redis.Client
}

// run runs the script. A server that has forgotten it is given it again. When
// the connection breaks, or leads to a server that has become a replica, the
// operation is sent once more on a new one: the script knows it by its name.
func (c *connection) run(ctx context.Context, a address, with Credentials, key string, args []any) (any, error) {
	raw, err := c.runOnce(ctx, a, with, key, args)
	if err != nil && ctx.Err() == nil && (broken(err) || says(err, "READONLY")) {
		c.close()
		raw, err = c.runOnce(ctx, a, with, key, args)
	}
	return raw, err
}

func (c *connection) runOnce(ctx context.Context, a address, with Credentials, key string, args []any) (any, error) {
	if err := c.open(a, with); err != nil {
		return nil, err
	}
	if c.name == "" {
		sum := sha1.Sum([]byte(c.script)) //nolint:gosec // as above
		c.name = hex.EncodeToString(sum[:])
	}
	raw, err := c.client.EvalSha(ctx, c.name, []string{key}, args...).Result()
	if says(err, "NOSCRIPT") {
		raw, err = c.client.Eval(ctx, c.script, []string{key}, args...).Result()
	}
	return raw, err
}

// scan calls found with every key that matches, some perhaps more than once.
func (c *connection) scan(ctx context.Context, a address, with Credentials, pattern string, found func(key string)) error {
	if err := c.open(a, with); err != nil {
		return err
	}
	cursor := uint64(0)
	for {
		keys, next, err := c.client.Scan(ctx, cursor, pattern, scanned).Result()
		if err != nil {
			return err
		}
		for _, key := range keys {
			found(key)
		}
		if next == 0 {
			return nil
		}
		cursor = next
	}
}

// open makes a client. It reads the files that it needs and dials nothing.
func (c *connection) open(a address, with Credentials) error {
	if c.client != nil {
		return nil
	}
	username, password, err := a.login(with)
	if err != nil {
		return budget.MarkUnusable(err)
	}
	trust, err := a.trust(with)
	if err != nil {
		return budget.MarkUnusable(err)
	}
	logging.Disable() // it would write to our stderr
	c.client = redis.NewClient(&redis.Options{
		Network: a.network, Addr: a.host, DB: a.db, Username: username, Password: password,
		Dialer: c.dialer(trust), DialTimeout: c.stretched(dialLimit + handshakeLimit),
		ReadTimeout: c.stretched(replyLimit), WriteTimeout: c.stretched(replyLimit), ContextTimeoutEnabled: true,
		DialerRetries: 1, MaxRetries: -1, PoolSize: 1, PipelinePoolSize: -1, ConnMaxIdleTime: idleLimit,
		ReadBufferSize: 4096, WriteBufferSize: 4096,
		Protocol: 2, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	return nil
}

func (c *connection) stretched(d time.Duration) time.Duration { return d * time.Duration(c.stretch) }

func (c *connection) close() {
	if c.client != nil {
		_ = c.client.Close()
		c.client = nil
	}
}

func (c *connection) dialer(trust *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, host string) (net.Conn, error) {
		d := net.Dialer{Timeout: c.stretched(dialLimit)}
		raw, err := d.DialContext(ctx, network, host)
		if err != nil || trust == nil {
			return raw, err
		}
		ctx, cancel := context.WithTimeout(ctx, c.stretched(handshakeLimit))
		defer cancel()
		secured := tls.Client(raw, trust)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, fmt.Errorf("shake hands: %w", err)
		}
		return secured, nil
	}
}

// broken reports whether a connection that was there has gone. One that could
// not be made is something else, and so is silence.
func broken(err error) bool {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return false
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
