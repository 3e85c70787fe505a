package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/retryx/retryx/budget"
)

// reply is what the script returns.
type reply struct {
	granted, leased, missing, damaged bool
	record                            budget.Record // as it stands after the decision
}

// Positions in the script's answer: flags, three texts and the numbers of the
// record in the order of NUMBERS in decide.lua.
const (
	atGranted = iota
	atLeased
	atMissing
	atDamaged
	atServer
	atHolder
	atRecent
	atNumbers
)

const (
	numbers = 18
	// microPart is what one part of the script's remainder is in parts of
	// budget.Bucket.Fraction: it counts microseconds, the bucket nanoseconds.
	microPart = int64(time.Microsecond)
	// domain is that of a server's clock: all times of a record are of one.
	domain = 1
)

// read takes an answer apart. What no script of ours can have said is refused.
func read(raw any) (reply, error) {
	list, ok := raw.([]any)
	if !ok || len(list) != atNumbers+numbers {
		return reply{}, fmt.Errorf("%w: the script's answer is not one", errRecord)
	}
	p := parts{list: list}
	r := reply{
		granted: p.int(atGranted) == 1, leased: p.int(atLeased) == 1,
		missing: p.int(atMissing) == 1, damaged: p.int(atDamaged) == 1,
	}
	n := make([]int64, numbers)
	for i := range n {
		n[i] = p.int(atNumbers + i)
	}
	at := n[0] * int64(time.Microsecond)
	r.record.Clock = budget.Stamp{Domain: domain, Boot: at, Wall: at}
	r.record.Bucket = budget.Bucket{
		Tokens: budget.Micro(n[1]), Fraction: n[2] * microPart,
		Params: budget.Params{Capacity: int(n[3]), Refill: budget.Rate(n[4]), Bonus: budget.Micro(n[5])},
	}
	r.record.Counters = budget.Counters{
		Granted: uint64(n[6]), Denied: uint64(n[7]), Refunded: uint64(n[8]),
		Deposits: uint64(n[9]), Resets: uint64(n[10]), Anomalies: uint64(n[11]),
	}
	r.record.Breaker = budget.Breaker{
		State: budget.BreakerState(n[12]), Generation: uint64(n[13]), Failures: int(n[14]),
		OpenFor: micro(n[15]), Until: int64(micro(n[16])), LeaseEnd: int64(micro(n[17])),
		Holder: p.uint(atHolder), Recent: p.past(atRecent),
	}
	if p.bad || r.record.Validate() != nil {
		return reply{}, fmt.Errorf("%w: the script's answer is not one", errRecord)
	}
	return r, nil
}

func micro(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// parts reads the elements of an answer; bad says that one was not what it
// should be.
type parts struct {
	list []any
	bad  bool
}

func (p *parts) int(i int) int64 {
	n, ok := p.list[i].(int64)
	p.bad = p.bad || !ok
	return n
}

func (p *parts) text(i int) string {
	s, ok := p.list[i].(string)
	p.bad = p.bad || !ok
	return s
}

func (p *parts) uint(i int) uint64 {
	n, err := strconv.ParseUint(p.text(i), 10, 64)
	p.bad = p.bad || err != nil
	return n
}

func (p *parts) past(i int) []budget.Past {
	var all []budget.Past
	for one := range strings.FieldsSeq(p.text(i)) {
		at, err := strconv.ParseInt(one[1:], 10, 64)
		p.bad = p.bad || err != nil
		all = append(all, budget.Past{Failed: one[0] == 'f', At: int64(micro(at))})
	}
	return all
}
