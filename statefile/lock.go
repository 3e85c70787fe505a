package statefile

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"golang.org/x/sys/unix"
)

// A lock is an exclusive flock: it belongs to the open file, so that no other
// descriptor of this process can drop it, and the kernel drops it when its
// holder dies. A blocked flock could not hear a signal, hence the polling; the
// waits grow and are spread so that nobody is passed over for long. (A blocked
// flock in a thread of its own was tried: those who come meanwhile take the lock
// from under it, and its longest waits were three times as long.) They do not grow
// far, or whoever meets a crowd has few tries in its time.

const (
	firstPoll = time.Millisecond
	lastPoll  = 4 * time.Millisecond
)

// lock takes the lock of fd. It tries at least once, whatever ctx and wait say;
// after wait it fails with ErrBusy, after the end of ctx with its error.
func lock(ctx context.Context, fd int, wait time.Duration) error {
	begun := time.Now()
	for poll := firstPoll; ; poll = min(2*poll, lastPoll) {
		err := tryLock(fd)
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return err
		}
		left := wait - time.Since(begun)
		if left <= 0 {
			return ErrBusy
		}
		if err := pause(ctx, min(left, jitter(poll))); err != nil {
			return err
		}
	}
}

func tryLock(fd int) error {
	_, err := retryInt(func() (int, error) { return 0, unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB) })
	return err
}

// unlock is explicit: a child that is being forked this moment holds a copy of
// the descriptor, and closing ours would not drop the lock.
func unlock(fd int) { _ = unix.Flock(fd, unix.LOCK_UN) }

// jitter returns between half of d and d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// pause waits, but not past the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
