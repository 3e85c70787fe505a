package sample_test

import (
	"slices"
	"testing"
	"time"

	"github.com/retryx/retryx/bench/internal/sample"
)

func TestQuantilesAreMeasuredValues(t *testing.T) {
	var s sample.Series
	for i := 100; i >= 1; i-- {
		s = append(s, time.Duration(i))
	}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 50, 0.99: 99, 0.999: 100, 1: 100} {
		if got := s.At(q); got != want {
			t.Errorf("At(%v) = %d, want %d", q, got, want)
		}
	}
	if got := sample.Series(nil).At(0.5); got != 0 {
		t.Errorf("At(0.5) of nothing = %d, want 0", got)
	}
}

func TestRatiosPairRounds(t *testing.T) {
	got := sample.Ratios(sample.Series{30, 10}, sample.Series{10, 10})
	if want := []float64{1, 3}; !slices.Equal(got, want) {
		t.Errorf("Ratios = %v, want %v", got, want)
	}
}
