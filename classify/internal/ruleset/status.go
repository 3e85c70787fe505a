package ruleset

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// How programs print an HTTP status. CODES and WORDS stand for expressions.
const (
	// A word that announces a status, and the number: "HTTP/1.1 503", "returned
	// error: 503", "statusCode=503". A plural behind it makes the number a count
	// ("failed: 502 records").
	statusAnnounced = `(?:\b(?:https?(?:/[\d.]+)?|re(?:turn(?:ed|s)|pl(?:ied|y)|spon(?:se|ded)|ceived|quest)|got|errno|fail(?:ed|ure)|fetch|answer(?:ed)?|server|api)|\b\w{0,20}(?:stat(?:us|ut)|codes?|err(?:or|eur)?|exception|fehler))` +
		`(?:[ _-]?(?:error|status|code|response|reply|http|with|was|is|a|an|of|from server|said))*[\s"'=:(\[\\#,-]{0,4}[ "'=:(\[#,-](?:CODES)` +
		`(?:_|[^\w\s]|\s*$|\s+(?:[^\w\s]|\w{1,3}\b|\w*(?:[^\Ws]|ss|us)\b|(?:this|does|needs|means|occurs|always|errors|responses)\b))`
	// The number, and the status in words.
	statusWorded = `\b(?:CODES) ?[:(-]? ?(?:WORDS)`
	// The number alone in one of the places where a status stands.
	statusBare = `\((?:http )?(?:CODES)\)|\[(?:CODES)\]|(?-i:\bE(?:CODES)\b)|http_?(?:CODES)\b|, ?(?:CODES)$| - (?:CODES)$|exceptions\.\w{1,60}: (?:CODES) `
)

// status reads {codes, words}: the expression that matches the HTTP statuses,
// however a program prints them.
func (p *parser) status(n *yaml.Node) Pattern {
	var codes, words string
	p.mapping(n, func(key string, v *yaml.Node) bool {
		switch key {
		case "codes":
			codes = p.text(v)
		case "words":
			words = p.text(v)
		default:
			return false
		}
		return true
	})
	if codes == "" {
		p.fail(n, "status needs codes, as '502|503'")
		return nil
	}
	forms := []string{statusAnnounced, statusBare}
	if words != "" {
		forms = append(forms, statusWorded)
	}
	var out Pattern
	for _, form := range forms {
		out = append(out, p.one(n, strings.NewReplacer("CODES", codes, "WORDS", words).Replace(form))...)
	}
	return out
}
