package filestore

import (
	"encoding/binary"
	"errors"
	"slices"
	"time"

	"github.com/retryx/retryx/budget"
)

// A record's bytes, all integers little-endian:
//
//	name           1 byte length, then the bytes; tells a file that was renamed by hand
//	clock          domain, boot ns, wall ns               3 x 8
//	bucket         tokens, fraction                       2 x 8
//	parameters     capacity, refill, bonus                3 x 8
//	counters       granted, denied, refunded, deposits,
//	               resets, anomalies                      6 x 8
//	breaker        state 1, failures, generation, open for,
//	               until, holder, lease end               1 + 6 x 8
//	recent         1 byte count, then failed 1 + at 8 each
//	writer         pid 4, for people who debug
//
// Decode refuses whatever no encode can have produced: a checksum says that the
// bytes are those that were written, not that they make sense.

var errRecord = errors.New("record makes no sense")

func encode(name string, r budget.Record, pid int) []byte {
	le := binary.LittleEndian
	b := make([]byte, 0, 400)
	b = append(b, byte(len(name)))
	b = append(b, name...)
	for _, n := range []uint64{
		r.Clock.Domain, uint64(r.Clock.Boot), uint64(r.Clock.Wall),
		uint64(r.Bucket.Tokens), uint64(r.Bucket.Fraction),
		uint64(r.Bucket.Params.Capacity), uint64(r.Bucket.Params.Refill), uint64(r.Bucket.Params.Bonus),
		r.Counters.Granted, r.Counters.Denied, r.Counters.Refunded,
		r.Counters.Deposits, r.Counters.Resets, r.Counters.Anomalies,
	} {
		b = le.AppendUint64(b, n)
	}
	k := &r.Breaker
	b = append(b, byte(k.State))
	for _, n := range []uint64{
		uint64(k.Failures), k.Generation, uint64(k.OpenFor), uint64(k.Until), k.Holder, uint64(k.LeaseEnd),
	} {
		b = le.AppendUint64(b, n)
	}
	b = append(b, byte(len(k.Recent)))
	for _, past := range k.Recent {
		failed := byte(0)
		if past.Failed {
			failed = 1
		}
		b = le.AppendUint64(append(b, failed), uint64(past.At))
	}
	return le.AppendUint32(b, uint32(pid))
}

func decode(name string, data []byte) (budget.Record, error) {
	d := decoder{data: data}
	var r budget.Record
	if string(d.take(int(d.byte()))) != name {
		return r, errRecord
	}
	r.Clock = budget.Stamp{Domain: d.uint(), Boot: d.int(), Wall: d.int()}
	r.Bucket.Tokens, r.Bucket.Fraction = budget.Micro(d.int()), d.int()
	capacity := d.int()
	r.Bucket.Params = budget.Params{Capacity: int(capacity), Refill: budget.Rate(d.int()), Bonus: budget.Micro(d.int())}
	c := &r.Counters
	for _, n := range []*uint64{&c.Granted, &c.Denied, &c.Refunded, &c.Deposits, &c.Resets, &c.Anomalies} {
		*n = d.uint()
	}
	d.breaker(&r.Breaker)
	d.take(4)
	if d.short || len(d.data) > 0 || r.Validate() != nil {
		return budget.Record{}, errRecord
	}
	return r, nil
}

// decoder takes fields off the front; what is missing reads as zero.
type decoder struct {
	data  []byte
	short bool
}

func (d *decoder) take(n int) []byte {
	if n > len(d.data) {
		d.short, d.data = true, nil
		return make([]byte, n)
	}
	taken := d.data[:n]
	d.data = d.data[n:]
	return taken
}

func (d *decoder) byte() byte   { return d.take(1)[0] }
func (d *decoder) uint() uint64 { return binary.LittleEndian.Uint64(d.take(8)) }
func (d *decoder) int() int64   { return int64(d.uint()) }

func (d *decoder) breaker(k *budget.Breaker) {
	k.State = budget.BreakerState(d.byte())
	k.Failures, k.Generation = int(d.int()), d.uint()
	k.OpenFor = time.Duration(d.int())
	k.Until, k.Holder, k.LeaseEnd = d.int(), d.uint(), d.int()
	count := d.byte()
	d.short = d.short || count > budget.BreakerWindow
	for range min(count, budget.BreakerWindow) {
		failed := d.byte()
		d.short = d.short || failed > 1
		k.Recent = append(k.Recent, budget.Past{Failed: failed == 1, At: d.int()})
	}
	k.Recent = slices.Clip(k.Recent)
}
