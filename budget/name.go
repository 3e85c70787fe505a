package budget

import (
	"fmt"
	"strings"
)

// MaxName is the longest name of a budget, in bytes.
const MaxName = 64

// corruptSuffix marks the copies of damaged records that lie beside the records.
// It is statefile.CorruptSuffix, which this package does not know.
const corruptSuffix = ".corrupt"

// ParseName returns s when it is a budget's name: one to 64 of a-z, 0-9, dot,
// underscore and dash, starting with a letter or digit. A name that ends in
// ".corrupt" is refused, because copies of damaged records are called that.
func ParseName(s string) (string, error) {
	if strings.HasSuffix(s, corruptSuffix) {
		return "", fmt.Errorf("read budget name %q: names ending in %s are kept for damaged records", s, corruptSuffix)
	}
	if !validName(s) {
		return "", fmt.Errorf("read budget name %q: want 1 to %d of a-z 0-9 . _ - starting with a letter or digit", s, MaxName)
	}
	return s, nil
}

// NameFor makes a tool's name fit: "Deploy Prod.sh" becomes "deploy-prod.sh".
// A name that already fits comes back unchanged; one of which nothing is left
// becomes "command".
func NameFor(tool string) string {
	fit := strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r < 0x80 && nameByte(byte(r)):
			return r
		}
		return '-'
	}, tool)
	fit = strings.TrimLeft(fit, "._-")
	fit = fit[:min(len(fit), MaxName)]
	if base, ok := strings.CutSuffix(fit, corruptSuffix); ok {
		fit = base + "-corrupt"
	}
	if fit == "" {
		return "command"
	}
	return fit
}

func validName(s string) bool {
	if s == "" || len(s) > MaxName || strings.IndexByte("._-", s[0]) >= 0 {
		return false
	}
	for i := range len(s) {
		if !nameByte(s[i]) {
			return false
		}
	}
	return true
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}
