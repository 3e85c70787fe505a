package filestore

import (
	"testing"
	"time"

	"github.com/retryx/retryx/budget"
)

// BenchmarkCodec turns a record with a full memory of outcomes into bytes and back.
func BenchmarkCodec(b *testing.B) {
	r := budget.NewRecord(budget.Defaults(), budget.Stamp{Domain: 1, Boot: int64(time.Hour), Wall: int64(time.Hour)})
	for i := range budget.BreakerWindow {
		r.Breaker.Recent = append(r.Breaker.Recent, budget.Past{Failed: i%2 == 0, At: int64(i)})
	}
	data := encode("artifacts", r, 1)
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			data = encode("artifacts", r, 1)
		}
	})
	b.Run("decode", func(b *testing.B) {
		var err error
		for b.Loop() {
			_, err = decode("artifacts", data)
		}
		if err != nil {
			b.Error(err)
		}
	})
}
