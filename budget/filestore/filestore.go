// Package filestore keeps budgets as records in the state directory: one file a
// budget, changed under its lock, shared by every process that names it.
package filestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
	"time"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/statefile"
)

// How long an operation waits for other processes. They hold the lock for
// microseconds; who waits this long will wait longer.
const (
	LockWait  = 250 * time.Millisecond
	BonusWait = 20 * time.Millisecond
)

// A run's record is removed when nobody has written it for runKept; whoever uses
// it writes it at least once in runTouch.
const (
	runKept  = 7 * 24 * time.Hour
	runTouch = 24 * time.Hour
)

// Store is a budget.Store in a state directory. The zero value of everything but
// Dir is ready to use. It is not safe for concurrent use within one process.
type Store struct {
	Dir statefile.Dir
	// Now reads the clocks; nil is the machine's own.
	Now func() statefile.Stamp

	clock statefile.Clock
}

// Kind returns budget.KindFile.
func (*Store) Kind() string { return budget.KindFile }

// Withdraw implements budget.Store.
func (s *Store) Withdraw(ctx context.Context, a budget.Account, _ uint64) (budget.Answer, error) {
	granted := false
	answer, err := s.change(ctx, a, LockWait, func(r *budget.Record) bool {
		granted = r.Withdraw()
		return true
	})
	answer.Granted = granted && err == nil
	return answer, err
}

// Refund implements budget.Store. A record that is gone is full, and stays gone.
func (s *Store) Refund(ctx context.Context, a budget.Account, _ uint64) (budget.Answer, error) {
	return s.changeExisting(ctx, a, LockWait, func(r *budget.Record) bool {
		r.Refund()
		return true
	})
}

// Configure implements budget.Store. In budget.Runs it also removes records of
// runs that ended long ago.
func (s *Store) Configure(ctx context.Context, a budget.Account, c budget.Change) (budget.Answer, error) {
	r, found, err := s.read(a)
	if err == nil && found && !s.differs(a, r, c) {
		r.Advance(s.now())
		return answer(&r), nil
	}
	if a.Space == budget.Runs && !found {
		s.Dir.Sweep(folder(a.Space), time.Now().Add(-runKept))
	}
	a.Params = c.Apply(a.Params)
	return s.change(ctx, a, LockWait, func(r *budget.Record) bool {
		r.Configure(c)
		return true
	})
}

// differs reports whether Configure has something to write into r, which is as
// it was last written.
func (s *Store) differs(a budget.Account, r budget.Record, c budget.Change) bool {
	if a.Space == budget.Runs && time.Duration(s.now().Wall-r.Clock.Wall) > runTouch {
		return true
	}
	return c.Apply(r.Bucket.Params) != r.Bucket.Params
}

// Ask implements budget.Store. A closed breaker is only read.
func (s *Store) Ask(ctx context.Context, a budget.Account, rule budget.BreakerRule, nonce uint64) (budget.Answer, error) {
	var permit budget.Permit
	ask := func(r *budget.Record) bool {
		permit = r.Breaker.Ask(r.Clock.Boot, rule, nonce)
		return r.Breaker.State != budget.BreakerClosed
	}
	r, _, err := s.Peek(ctx, a)
	if err == nil && r.Breaker.State == budget.BreakerClosed {
		ask(&r)
		got := answer(&r)
		got.Permit, got.Granted = permit, true
		return got, nil
	}
	got, err := s.changeExisting(ctx, a, LockWait, ask)
	if err != nil {
		return budget.Answer{}, err // a lease that is not written is nobody's
	}
	got.Permit, got.Granted = permit, permit.Granted
	return got, nil
}

// Settle implements budget.Store.
func (s *Store) Settle(ctx context.Context, a budget.Account, how budget.Settling, _ uint64) (budget.Answer, error) {
	r, found, err := s.Peek(ctx, a)
	if err == nil && !worthWriting(&r, found, how) {
		return answer(&r), nil
	}
	wait := LockWait
	if !how.Breaker {
		wait = BonusWait
	}
	return s.change(ctx, a, wait, func(r *budget.Record) bool { return settle(r, how) })
}

// worthWriting reports whether a settling would change what anybody can tell.
func worthWriting(r *budget.Record, found bool, how budget.Settling) bool {
	if how.Bonus && found && !r.Bucket.Full() {
		return true
	}
	if !how.Breaker {
		return false
	}
	k := &r.Breaker
	if how.Release {
		return k.State == budget.BreakerHalfOpen && k.Holder == how.Result.Nonce
	}
	return how.Result.Failed || !k.Clean(r.Clock.Boot)
}

func settle(r *budget.Record, how budget.Settling) bool {
	if how.Bonus {
		r.Deposit()
	}
	switch {
	case how.Breaker && how.Release:
		r.Breaker.Release(how.Result.Nonce)
	case how.Breaker:
		r.Breaker.Record(r.Clock.Boot, how.Rule, how.Result)
	}
	return true
}

// Peek implements budget.Store. Without a record it returns the one that would
// be made.
func (s *Store) Peek(_ context.Context, a budget.Account) (budget.Record, bool, error) {
	r, found, err := s.read(a)
	if found && err == nil {
		r.Advance(s.now())
	}
	return r, found, err
}

// read returns the record as it was last written, without a lock.
func (s *Store) read(a budget.Account) (r budget.Record, found bool, err error) {
	content, err := s.file(a).Read()
	if err != nil {
		return budget.Record{}, false, wrap(err)
	}
	switch content.State {
	case statefile.Intact:
		r, err := decode(fileName(a), content.Payload)
		return r, true, err
	case statefile.Damaged:
		return budget.EmptyRecord(a.Params, s.now()), true, errDamaged
	case statefile.Missing:
	}
	return budget.NewRecord(a.Params, s.now()), false, nil
}

// List implements budget.Store.
func (s *Store) List(_ context.Context, space budget.Space) ([]string, error) {
	files, err := s.Dir.List(folder(space))
	if err != nil {
		return nil, wrap(err)
	}
	names := files[:0]
	for _, file := range files {
		if _, err := budget.ParseName(file); err == nil || space == budget.Runs && !strings.HasSuffix(file, statefile.CorruptSuffix) {
			names = append(names, file)
		}
	}
	return names, nil
}

// Reset implements budget.Store. Without a record there is nothing to reset.
func (s *Store) Reset(ctx context.Context, a budget.Account) error {
	_, err := s.changeExisting(ctx, a, LockWait, func(r *budget.Record) bool {
		r.Refill()
		return true
	})
	return err
}

// change applies one decision under the lock; decide says whether to write.
func (s *Store) change(ctx context.Context, a budget.Account, wait time.Duration, decide func(*budget.Record) bool) (budget.Answer, error) {
	return s.apply(ctx, a, wait, func(r *budget.Record, _ bool) bool { return decide(r) })
}

// changeExisting is change for decisions that make no record.
func (s *Store) changeExisting(ctx context.Context, a budget.Account, wait time.Duration, decide func(*budget.Record) bool) (budget.Answer, error) {
	return s.apply(ctx, a, wait, func(r *budget.Record, missing bool) bool { return decide(r) && !missing })
}

func (s *Store) apply(ctx context.Context, a budget.Account, wait time.Duration, decide func(r *budget.Record, missing bool) bool) (budget.Answer, error) {
	s.now() // finds out the clock's domain, if it is not known: not while others wait for the lock
	var got budget.Answer
	damaged := false
	copied, err := s.file(a).Change(ctx, wait, func(c statefile.Content) []byte {
		r := s.load(a, c)
		damaged = c.State == statefile.Damaged
		write := decide(&r, c.State == statefile.Missing)
		got = answer(&r)
		if !write && !damaged {
			return nil
		}
		return encode(fileName(a), r, os.Getpid())
	})
	if err != nil {
		return budget.Answer{}, wrap(err)
	}
	switch {
	case copied != "":
		got.Damaged = "its bytes are kept in " + copied
	case damaged:
		got.Damaged = "its bytes could not be kept"
	}
	return got, nil
}

// load turns what the file holds into the record as it stands now.
func (s *Store) load(a budget.Account, c statefile.Content) budget.Record {
	now := s.now()
	switch c.State {
	case statefile.Missing:
		return budget.NewRecord(a.Params, now)
	case statefile.Intact:
		if r, err := decode(fileName(a), c.Payload); err == nil {
			r.Advance(now)
			return r
		}
	case statefile.Damaged:
	}
	return budget.EmptyRecord(a.Params, now)
}

func (s *Store) file(a budget.Account) statefile.File {
	return statefile.File{
		Dir: s.Dir, Sub: folder(a.Space), Name: fileName(a),
		Valid: func(payload []byte) bool {
			_, err := decode(fileName(a), payload)
			return err == nil
		},
	}
}

func (s *Store) now() budget.Stamp {
	if s.Now != nil {
		return budget.Stamp(s.Now())
	}
	return budget.Stamp(s.clock.Now())
}

func answer(r *budget.Record) budget.Answer {
	return budget.Answer{Balance: r.Balance(), Breaker: r.BreakerView()}
}

func folder(s budget.Space) string {
	switch s {
	case budget.Named:
		return "budgets"
	case budget.Runs:
		return "runs"
	case budget.Fallbacks:
		return "fallback"
	}
	return "unknown"
}

// ulidLength is the length of the run ids that retryx makes itself.
const ulidLength = 26

// fileName is the account's name if it can be a file's name everywhere, also
// where upper and lower case are the same; other run ids are hashed.
func fileName(a budget.Account) string {
	if _, err := budget.ParseName(a.Name); err == nil {
		return a.Name
	}
	if len(a.Name) == ulidLength && strings.Trim(a.Name, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") == "" {
		return strings.ToLower(a.Name)
	}
	sum := sha256.Sum256([]byte(a.Name))
	return "id-" + hex.EncodeToString(sum[:16])
}
