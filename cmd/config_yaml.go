package cmd

// YAML with its lines: what a decoder into structs would lose. Values stay the
// text that was written; what YAML takes them for matters only where it tells a
// mistake.

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

func (p *configParser) where(n *yaml.Node) string { return fmt.Sprintf("%s:%d", p.path, n.Line) }

// problem notes what is wrong with a key, which is empty for the whole file.
func (p *configParser) problem(n *yaml.Node, key, format string, args ...any) {
	at := p.where(n) + ": "
	if key != "" {
		at += key + ": "
	}
	p.problems = append(p.problems, at+fmt.Sprintf(format, args...))
}

// text refuses what is no text, of which the YAML parser names no line.
func (p *configParser) text(data []byte) bool {
	line := 1
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		what := ""
		switch {
		case r == utf8.RuneError && size == 1:
			what = "is not UTF-8; save the file as UTF-8"
		case r == '\n':
			line++
		case unicode.IsControl(r) && r != '\t' && r != '\r' && r != '\u0085':
			what = fmt.Sprintf("holds a control character (%U); remove it", r)
		}
		if what != "" {
			p.problems = append(p.problems, fmt.Sprintf("%s:%d: %s", p.path, line, what))
			return false
		}
		i += size
	}
	return true
}

// document returns the root of the only document, nil when there is none.
func (p *configParser) document(data []byte) *yaml.Node {
	var doc, second yaml.Node
	in := yaml.NewDecoder(bytes.NewReader(data))
	if err := in.Decode(&doc); err != nil {
		if !errors.Is(err, io.EOF) {
			p.syntax(err)
		}
		return nil
	}
	switch err := in.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		p.syntax(err)
		return nil
	default:
		p.problem(&second, "", "a second document starts here; a file holds one, remove the line ---")
	}
	if len(doc.Content) == 0 || isNull(doc.Content[0]) {
		return nil
	}
	return doc.Content[0]
}

// syntax notes what the YAML parser said. It names the line in its text, all but
// the first, and may be one line late.
func (p *configParser) syntax(err error) {
	text, at := strings.TrimPrefix(err.Error(), "yaml: "), "1"
	if rest, ok := strings.CutPrefix(text, "line "); ok {
		if line, what, ok := strings.Cut(rest, ": "); ok {
			at, text = line, what
		}
	}
	p.problems = append(p.problems, fmt.Sprintf("%s:%s: not YAML: %s; look at this line and at the one above", p.path, at, text))
}

// entries visits the keys of a mapping in order, each once.
func (p *configParser) entries(n *yaml.Node, at string, visit func(key string, k, v *yaml.Node)) {
	n = resolveAlias(n)
	if n.Kind != yaml.MappingNode {
		p.problem(n, at, "want keys and values, not %s", describeNode(n))
		return
	}
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], resolveAlias(n.Content[i+1])
		switch line := first[k.Value]; {
		case k.Kind != yaml.ScalarNode:
			p.problem(k, at, "a key must be a word, not %s", describeNode(k))
		case k.Tag == "!!merge":
			p.problem(k, keyPath(at, k.Value), "YAML merge keys are not read; write the keys out")
		case line > 0:
			p.problem(k, keyPath(at, k.Value), "stands in line %d already; remove one of them", line)
		default:
			first[k.Value] = k.Line
			visit(k.Value, k, v)
		}
	}
}

// keyPath is how a key is called in messages. Escapes can put anything into a
// key, which must not reach a terminal.
func keyPath(at, key string) string {
	if strings.ContainsFunc(key, func(r rune) bool { return !unicode.IsPrint(r) }) {
		key = strconv.Quote(key)
	}
	if at == "" {
		return key
	}
	return at + "." + key
}

// scalar returns a single value as it was written.
func (p *configParser) scalar(n *yaml.Node, at string) (string, bool) {
	switch {
	case isNull(n):
		p.problem(n, at, "has no value; write one or remove the line")
	case n.Kind != yaml.ScalarNode:
		p.problem(n, at, "want one value, not %s", describeNode(n))
	default:
		return n.Value, true
	}
	return "", false
}

// nodeItems returns the entries of a list, or a single value as its only one.
func nodeItems(n *yaml.Node) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		return []*yaml.Node{n}
	}
	out := make([]*yaml.Node, len(n.Content))
	for i, item := range n.Content {
		out[i] = resolveAlias(item)
	}
	return out
}

// resolveAlias follows an alias to what it stands for.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

func isText(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && !isNull(n) }

func describeNode(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys and values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case isNull(n):
		return "nothing"
	}
	return strconv.Quote(n.Value)
}
