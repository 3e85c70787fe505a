package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/retryx/retryx/budget"
)

// Errors obey these rules:
//
//   - They name the server's address without user and password, and say what to
//     do where that is known.
//   - ErrUnusable are those that only a person can end: files that do not read,
//     a login or a right that is refused, an address that is not the right one.
//     Everything else is a failure in use.

// errRecord marks what is wrong with one record, not with the server.
var errRecord = errors.New("record makes no sense")

// errDamaged is what Peek says of a record that the next decision will restart.
var errDamaged = fmt.Errorf("%w; the next decision restarts it at 0 tokens", errRecord)

// says reports whether the server answered with an error of the given code.
// Servers put what a script met behind words of their own.
func says(err error, codes ...string) bool {
	said, ok := errors.AsType[redis.Error](err)
	if !ok {
		return false
	}
	text := said.Error()
	for _, code := range codes {
		if strings.HasPrefix(text, code) || strings.Contains(text, " "+code+" ") || strings.Contains(text, "-"+code+" ") {
			return true
		}
	}
	return false
}

// explain turns what a client says into what a person can use.
func explain(a address, limit time.Duration, err error) error {
	text, unusable := cause(limit, err)
	err = wrapped{fmt.Sprintf("ask %s: %s", a.text, text), err}
	if unusable {
		return budget.MarkUnusable(err)
	}
	return err
}

func cause(limit time.Duration, err error) (text string, unusable bool) {
	switch {
	case errors.Is(err, budget.ErrUnusable):
		return err.Error(), true
	case errors.Is(err, errRecord):
		return err.Error(), false
	case says(err, "WRONGPASS", "NOAUTH", "ERR invalid password", "ERR AUTH", "ERR Client sent AUTH", "ERR Protocol error: unauthenticated"):
		return "the login was refused; check RETRYX_REDIS_USERNAME and RETRYX_REDIS_PASSWORD", true
	case says(err, "NOPERM") || says(err, "ERR") && forbidden(err.Error()):
		return "the user may not do this: " + short(err), true
	case says(err, "MOVED", "ASK", "CROSSSLOT"):
		return "the budget lives on another node of a cluster; give the address of that node or of a proxy: " + short(err), true
	case says(err, "WRONGTYPE"):
		return "the key holds something that is not a budget; remove it or name the budget differently", false
	case says(err, "READONLY"):
		return "it is a read-only replica; give the address of the primary", false
	case says(err, "LOADING"):
		return "it is still loading its data", false
	case says(err, "OOM"):
		return "it is out of memory", false
	}
	if _, ok := errors.AsType[redis.Error](err); ok {
		return "it says: " + short(err), false
	}
	return trouble(limit, err), false
}

// forbidden knows what servers say of a script that its user may not run.
func forbidden(text string) bool {
	return strings.Contains(text, "ACL failure") || strings.Contains(text, "The user executing the script can't")
}

// trouble is about the way to the server.
func trouble(limit time.Duration, err error) string {
	var timeout net.Error
	op, _ := errors.AsType[*net.OpError](err)
	switch {
	case op != nil && op.Op == "dial" && op.Timeout():
		return fmt.Sprintf("it took no connection within %v", dialLimit)
	case errors.Is(err, syscall.ECONNREFUSED):
		return "it refuses connections; is it running?"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, redis.ErrPoolTimeout):
		return fmt.Sprintf("it gave no answer within %v", limit)
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Sprintf("it gave no answer within %v", replyLimit)
	case broken(err):
		return "it closed the connection"
	}
	return short(err)
}

// short is one line of an error.
func short(err error) string {
	const longest = 200
	text := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, err.Error())
	return text[:min(len(text), longest)]
}

// wrapped is an error with a text of ours.
type wrapped struct {
	text string
	err  error
}

func (w wrapped) Error() string { return w.text }
func (w wrapped) Unwrap() error { return w.err }
