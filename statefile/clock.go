package statefile

import (
	"hash/fnv"
	"time"
)

// Stamp is now on two clocks.
type Stamp struct {
	Domain uint64 // names the boot and the time namespace in which Boot has a meaning
	Boot   int64  // nanoseconds since boot, through suspend; nobody can set it
	Wall   int64  // nanoseconds since 1970
}

// wallDomain is where machines are put that do not tell one boot from another:
// there the wall clock takes the place of the boot clock.
const wallDomain = 1

// A Clock reads both clocks. The zero value is ready; it finds out its domain
// when it is first read. It is not safe for concurrent use.
type Clock struct {
	domain uint64
}

// Now returns the time on both clocks.
func (c *Clock) Now() Stamp {
	if c.domain == 0 {
		c.domain = domain(bootIdentity())
	}
	wall := time.Now().UnixNano()
	boot, ok := bootTime()
	if !ok || c.domain == wallDomain {
		return Stamp{Domain: wallDomain, Boot: wall, Wall: wall}
	}
	return Stamp{Domain: c.domain, Boot: boot, Wall: wall}
}

// domain hashes what identifies a boot; an empty identity is the wall's domain.
func domain(identity string) uint64 {
	if identity == "" {
		return wallDomain
	}
	h := fnv.New64a()
	h.Write([]byte(identity))
	return max(h.Sum64(), wallDomain+1)
}
