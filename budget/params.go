package budget

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Numbers are decimals with at most six digits after the point, and nothing is
// ever rounded. A price or a balance is a whole number of micro-tokens. A rate
// is a whole number of micro-tokens an hour, because a second, a minute and an
// hour all divide it: 0.1/s is 360 tokens an hour exactly, and so are 6/m and
// 360/h.

// Micro is an amount in micro-tokens.
type Micro int64

// Rate is a refill in micro-tokens an hour.
type Rate int64

// The units and the largest values that anything in this package accepts.
const (
	Token       Micro = 1_000_000
	MaxCapacity       = 1_000_000                 // tokens
	MaxRefill   Rate  = 1000 * Rate(Token) * 3600 // 1000 tokens a second
	MaxBonus          = Token                     // one token a success
)

// Params say how a budget behaves.
type Params struct {
	Capacity int   // whole tokens, 0 to MaxCapacity; 0 never pays for a retry
	Refill   Rate  // 0 to MaxRefill; 0 never refills
	Bonus    Micro // per successful invocation, 0 to MaxBonus
}

// Defaults returns what a budget is made with when nobody says otherwise: 20
// tokens, a token every 10 seconds, a tenth of a token per success.
func Defaults() Params {
	return Params{Capacity: 20, Refill: 360 * Rate(Token), Bonus: Token / 10}
}

// Validate reports every parameter that is out of its range.
func (p Params) Validate() error {
	var errs []error
	if p.Capacity < 0 || p.Capacity > MaxCapacity {
		errs = append(errs, fmt.Errorf("capacity %d is not between 0 and %d", p.Capacity, MaxCapacity))
	}
	if p.Refill < 0 || p.Refill > MaxRefill {
		errs = append(errs, fmt.Errorf("refill %s is not between 0/s and 1000/s", p.Refill))
	}
	if p.Bonus < 0 || p.Bonus > MaxBonus {
		errs = append(errs, fmt.Errorf("bonus %s is not between 0 and 1", p.Bonus))
	}
	return errors.Join(errs...)
}

// Change holds the parameters that a user gave explicitly; nil leaves one alone.
type Change struct {
	Capacity *int
	Refill   *Rate
	Bonus    *Micro
}

// Empty reports whether nothing was given.
func (c Change) Empty() bool { return c.Capacity == nil && c.Refill == nil && c.Bonus == nil }

// Apply returns p with the given values put in.
func (c Change) Apply(p Params) Params {
	if c.Capacity != nil {
		p.Capacity = *c.Capacity
	}
	if c.Refill != nil {
		p.Refill = *c.Refill
	}
	if c.Bonus != nil {
		p.Bonus = *c.Bonus
	}
	return p
}

// Tokens returns the amount in tokens, for people and JSON.
func (m Micro) Tokens() float64 { return float64(m) / float64(Token) }

// String writes the amount in tokens, exactly: "0.1", "20".
func (m Micro) String() string { return decimal(int64(m)) }

// String writes the rate exactly and as ParseRefill reads it: "0.1/s", "10/h".
// The unit is the shortest one that needs no more than six decimals.
func (r Rate) String() string {
	switch {
	case r%3600 == 0:
		return decimal(int64(r)/3600) + "/s"
	case r%60 == 0:
		return decimal(int64(r)/60) + "/m"
	}
	return decimal(int64(r)) + "/h"
}

// ParseCapacity reads a whole number of tokens, 0 to MaxCapacity.
func ParseCapacity(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n > MaxCapacity {
		return 0, fmt.Errorf("read capacity %q: want a whole number of tokens from 0 to %d", s, MaxCapacity)
	}
	return int(n), nil
}

// ParseRefill reads NUMBER/UNIT where UNIT is s, m or h: "0.1/s", "6/m",
// "10/h", at most 1000/s. A bare "0" means never.
func ParseRefill(s string) (Rate, error) {
	if s == "0" {
		return 0, nil
	}
	number, unit, _ := strings.Cut(s, "/")
	perHour := map[string]int64{"s": 3600, "m": 60, "h": 1}[unit]
	micro, ok := parseDecimal(number)
	if !ok || perHour == 0 {
		return 0, fmt.Errorf("read refill %q: want tokens per s, m or h with at most six decimals, such as 0.1/s, 6/m or 10/h", s)
	}
	if micro > int64(MaxRefill)/perHour {
		return 0, fmt.Errorf("read refill %q: the most is 1000/s", s)
	}
	return Rate(micro * perHour), nil
}

// ParseBonus reads a decimal number of tokens from 0 to 1.
func ParseBonus(s string) (Micro, error) {
	micro, ok := parseDecimal(s)
	if !ok || Micro(micro) > MaxBonus {
		return 0, fmt.Errorf("read bonus %q: want a number from 0 to 1 with at most six decimals", s)
	}
	return Micro(micro), nil
}

// parseDecimal reads digits with at most six more behind a point, in millionths.
func parseDecimal(s string) (int64, bool) {
	whole, part, point := strings.Cut(s, ".")
	if !digits(whole) || point && !digits(part) || len(whole) > 12 || len(part) > 6 {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+part+strings.Repeat("0", 6-len(part)), 10, 64)
	return n, err == nil
}

func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// decimal writes n millionths without trailing zeros.
func decimal(n int64) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	s := fmt.Sprintf("%s%d.%06d", sign, n/1_000_000, n%1_000_000)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
