package annotations

import "strings"

// parseTemplate splits t into literal texts and islands, which are expressions in braces.
func (p *parser) parseTemplate(t Text) Template {
	tmpl := Template{Text: t}
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			tmpl.Parts = append(tmpl.Parts, Part{Literal: literal.String()})
			literal.Reset()
		}
	}
	for i := 0; i < len(t.Value); {
		switch c, rest := t.Value[i], t.Value[i:]; {
		case strings.HasPrefix(rest, "{{") || strings.HasPrefix(rest, "}}"):
			literal.WriteByte(c)
			i += 2
		case c == '}':
			p.errorf(t.At(i), "unexpected }; a brace in the text is written }}")
			i++
		case c == '{':
			end, ok := p.island(t, i)
			if !ok {
				return tmpl
			}
			flush()
			tmpl.Parts = append(tmpl.Parts, Part{Island: Expr{t.slice(i+1, end).trim()}})
			i = end + 1
		default:
			literal.WriteByte(c)
			i++
		}
	}
	flush()
	return tmpl
}

// island returns the index of the closing brace of the island that begins at t.Value[open].
func (p *parser) island(t Text, open int) (end int, ok bool) {
	expected := []byte{'}'} // the closing brackets still to come, innermost last
	for i := open + 1; i < len(t.Value); i++ {
		switch c := t.Value[i]; c {
		case '{':
			expected = append(expected, '}')
		case '[':
			expected = append(expected, ']')
		case '(':
			expected = append(expected, ')')
		case '}', ']', ')':
			last := len(expected) - 1
			if c != expected[last] {
				p.errorf(t.At(i), "unexpected %c in %q; expected %c", c, t.Value[open:i+1], expected[last])
				return 0, false
			}
			if expected = expected[:last]; last == 0 {
				return i, p.filled(t, open, i)
			}
		case '"', '\'', '`':
			n := stringLen(t.Value[i:])
			if n == 0 {
				p.errorf(t.At(i), "missing closing %c in %q", c, t.Value[open:])
				return 0, false
			}
			i += n - 1
		}
	}
	p.errorf(t.At(open), "missing closing }; a brace in the text is written {{")
	return 0, false
}

// filled reports whether the island has an expression, and adds an error if not.
func (p *parser) filled(t Text, open, end int) bool {
	if strings.TrimSpace(t.Value[open+1:end]) == "" {
		p.errorf(t.At(open), "the braces are empty; expected {expression}")
		return false
	}
	return true
}

// stringLen returns the length of the quoted string that s begins with, or 0 if its closing quote is missing.
func stringLen(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == s[0]:
			return i + 1
		case s[i] == '\\' && s[0] != '`':
			i++
		}
	}
	return 0
}
