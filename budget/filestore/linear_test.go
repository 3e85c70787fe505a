package filestore_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sys/unix"

	"github.com/retryx/retryx/budget"
	"github.com/retryx/retryx/budget/filestore"
	"github.com/retryx/retryx/statefile"
)

// The checker obeys these rules:
//
//   - An operation is what one process asked and was told, with the clock that
//     all processes of a boot share before it asked and after it was told.
//   - The model is budget.Bucket alone. No time passes in it, so its accounts have
//     no refill.
//   - An operation that failed may or may not have happened; the histories here
//     have none, as what was busy is asked again within the same operation.

// told is what an operation said.
type told struct {
	granted bool
	tokens  budget.Micro
}

// The verbs of a history.
const (
	verbWithdraw = iota
	verbRefund
	verbDeposit
	verbPeek
	verbCount
)

// lifeLength is how many operations each process of a history has.
const lifeLength = 60

// live does random operations, of the first so many verbs, and writes for each
// "BEGIN END VERB GRANTED TOKENS".
func live(s *filestore.Store, a budget.Account, seed, verbs string, out io.Writer) error {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		return err
	}
	most, err := strconv.Atoi(verbs)
	if err != nil {
		return err
	}
	a.Params.Bonus = budget.Token / 10
	dice := rand.New(rand.NewPCG(n, 0))
	w := bufio.NewWriter(out)
	for range lifeLength {
		verb := dice.IntN(most)
		begin := monotonic()
		what, err := act(s, a, verb)
		if err != nil {
			return err
		}
		fmt.Fprintln(w, begin, monotonic(), verb, what.granted, int64(what.tokens))
	}
	return w.Flush()
}

// act does one operation; a lock that was busy for too long is asked for again,
// as nothing has happened then.
func act(s *filestore.Store, a budget.Account, verb int) (told, error) {
	for {
		what, err := once(s, a, verb)
		if !errors.Is(err, statefile.ErrBusy) {
			return what, err
		}
	}
}

func once(s *filestore.Store, a budget.Account, verb int) (told, error) {
	ctx := context.Background()
	var answer budget.Answer
	var err error
	switch verb {
	case verbWithdraw:
		answer, err = s.Withdraw(ctx, a, 0)
	case verbRefund:
		answer, err = s.Refund(ctx, a, 0)
	case verbDeposit:
		answer, err = s.Settle(ctx, a, budget.Settling{Bonus: true}, 0)
	case verbPeek:
		r, _, err := s.Peek(ctx, a)
		return told{tokens: r.Bucket.Tokens}, err
	}
	return told{answer.Granted, answer.Balance.Tokens}, err
}

func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

// bucketModel is the pure bucket: what it does in one order is what every history
// must be explained by.
func bucketModel(p budget.Params) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return budget.NewBucket(p) },
		Step: func(state, input, output any) (bool, any) {
			b, want := state.(budget.Bucket), told{}
			switch input.(int) {
			case verbWithdraw:
				want.granted = b.Withdraw()
			case verbRefund:
				b.Refund()
			case verbDeposit:
				b.Deposit()
			}
			want.tokens = b.Tokens
			return output.(told) == want, b
		},
		DescribeOperation: func(input, output any) string {
			verb := []string{"withdraw", "refund", "deposit", "peek"}[input.(int)]
			return fmt.Sprintf("%s: granted %v, %s tokens", verb, output.(told).granted, output.(told).tokens)
		},
	}
}

// record lets processes live at once on one record and returns what they did.
func record(t *testing.T, processes, capacity, verbs int, seed uint64) []porcupine.Operation {
	t.Helper()
	dir := stateDir(t)
	var helpers []*helper
	for i := range processes {
		helpers = append(helpers, start(t, "live", dir, capacity, strconv.FormatUint(seed+uint64(i), 10), strconv.Itoa(verbs)))
	}
	begin(t, helpers...)
	var all []porcupine.Operation
	for i, h := range helpers {
		for line := range strings.Lines(h.finish(t)) {
			op := porcupine.Operation{ClientId: i}
			var verb int
			var what told
			if _, err := fmt.Sscan(line, &op.Call, &op.Return, &verb, &what.granted, (*int64)(&what.tokens)); err != nil {
				t.Fatalf("helper wrote %q: %v", line, err)
			}
			op.Input, op.Output = verb, what
			all = append(all, op)
		}
	}
	if want := processes * lifeLength; len(all) != want {
		t.Fatalf("%d processes did %d operations, want %d", processes, len(all), want)
	}
	return all
}

// checkLimit is far more than a check takes; without an answer by then the test
// fails and says so.
const checkLimit = time.Minute

// Property 14: withdrawals, refunds, bonuses and looks of processes that live at
// once on one record, made by whoever was first, can be put into one order that
// the bucket explains and that contradicts no clock. A small bucket is often empty
// and often full, a large one never.
func TestHistoriesAreLinearizable(t *testing.T) {
	rounds := 1
	if os.Getenv("RETRYX_STRESS") == "1" {
		rounds = 50
	}
	for _, capacity := range []int{2, 500} {
		t.Run(strconv.Itoa(capacity), func(t *testing.T) {
			for range rounds {
				seed := rand.Uint64() >> 1
				history := record(t, 8, capacity, verbCount, seed)
				p := budget.Params{Capacity: capacity, Bonus: budget.Token / 10}
				if got := porcupine.CheckOperationsTimeout(bucketModel(p), history, checkLimit); got != porcupine.Ok {
					t.Fatalf("the history of seed %d is %s, want %s", seed, got, porcupine.Ok)
				}
			}
		})
	}
}

// A checker that accepts everything would prove nothing. Of withdrawals alone each
// leaves less than the one before, so that these changes cannot be explained away.
func TestCheckerRejectsWhatCannotBe(t *testing.T) {
	const capacity = 500
	seed := rand.Uint64() >> 1
	model := bucketModel(budget.Params{Capacity: capacity, Bonus: budget.Token / 10})
	history := record(t, 4, capacity, verbWithdraw+1, seed)
	slices.SortFunc(history, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	if got := porcupine.CheckOperationsTimeout(model, history, checkLimit); got != porcupine.Ok {
		t.Fatalf("the history of seed %d is %s, want %s", seed, got, porcupine.Ok)
	}
	last := len(history) - 1
	for name, spoil := range map[string]func(h []porcupine.Operation){
		"a token paid twice":   func(h []porcupine.Operation) { h[last].Output = h[0].Output },
		"a millionth too much": func(h []porcupine.Operation) { h[last].Output = told{true, h[last].Output.(told).tokens + 1} },
		"the last before all":  func(h []porcupine.Operation) { h[last].Call, h[last].Return = 1, 2 },
		"an answer forgotten":  func(h []porcupine.Operation) { h[0].Output = told{} },
	} {
		t.Run(name, func(t *testing.T) {
			spoiled := slices.Clone(history)
			spoil(spoiled)
			if got := porcupine.CheckOperationsTimeout(model, spoiled, checkLimit); got != porcupine.Illegal {
				t.Errorf("the spoiled history of seed %d is %s, want %s", seed, got, porcupine.Illegal)
			}
		})
	}
}
