package annotations

import (
	"go/ast"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const tool = "ratelimit"

// find returns the directive that c is, without its arguments, and the rest of the line. What only looks like one is added
// to the errors. It takes for a directive whatever ast.ParseDirective does, and //ratelimit:Rule too, to say what is wrong.
func (p *parser) find(c *ast.Comment) (d Directive, rest Text, ok bool) {
	const head = "//" + tool + ":"
	p.line = Text{Value: c.Text, Pos: c.Slash}
	name, ok := strings.CutPrefix(c.Text, head)
	if !ok || strings.IndexFunc(name, unicode.IsSpace) == 0 && strings.TrimSpace(name) != "" {
		p.nearMiss(c)
		return Directive{}, Text{}, false
	}
	if len(c.Text) > maxDirective {
		p.add(c.Slash, "this directive is %d bytes long; at most %d are possible", len(c.Text), maxDirective)
		return Directive{}, Text{}, false
	}
	if n := strings.IndexFunc(name, unicode.IsSpace); n >= 0 {
		name = name[:n]
	}
	end := len(head) + wordLen(name)
	d = Directive{Pos: c.Slash, Verb: p.line.slice(len(head), end)}
	return d, p.line.slice(end, len(c.Text)), p.verb(d.Verb, c.Text[end:len(head)+len(name)])
}

// verb reports whether v is a verb; behind is what follows it without a space.
func (p *parser) verb(v Text, behind string) bool {
	known := LookUp(v.Value) != nil
	switch {
	case known && behind == "":
		return true
	case known:
		p.add(v.At(len(v.Value)), "unexpected %q behind the verb %s; expected a space", behind, v.Value)
	case v.Value == "":
		p.add(v.Pos-1, "missing verb behind the colon; expected %s", list(verbNames, "or"))
	case strings.HasPrefix(behind, "=") && isOneOf(v.Value, argumentNames):
		p.add(v.Pos, "missing verb before the argument %s; expected %s", v.Value, list(verbNames, "or"))
	default:
		p.unknown("verb", v, verbNames)
	}
	return false
}

// wordLen is the length of the letters, digits, hyphens and underscores that s begins with.
func wordLen(s string) int {
	n := strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_'
	})
	if n < 0 {
		return len(s)
	}
	return n
}

// scanner splits what follows a verb into arguments. ast.Directive.ParseArgs does not serve: to it, a quote inside name="a b"
// is a letter like any other.
type scanner struct {
	*parser
	Text     // the line behind the verb
	next int // Value[next:] is still to be read
}

// scan returns the arguments of rest. A bare word, such as a flag, is a name without a value.
func (p *parser) scan(rest Text) []Arg {
	s := scanner{parser: p, Text: rest}
	var args []Arg
	broken := false
	for s.skip(unicode.IsSpace); s.rest() != ""; s.skip(unicode.IsSpace) {
		before, nameless := len(s.errs), strings.ContainsRune("=\"`", s.peek())
		a, ok := s.arg()
		if ok && s.isOther(a) {
			return args
		}
		switch last := len(args) - 1; {
		case broken && nameless: // a piece of what was broken
			s.errs = s.errs[:before]
			continue
		case broken && ok && a.Value.IsZero(): // the same
			continue
		case nameless && last >= 0 && args[last].isBare(): // the value before goes on here
			args = args[:last]
		}
		if broken = !ok; ok {
			args = append(args, a)
		}
	}
	return args
}

// isOther reports what is behind the arguments: a comment, or another directive.
func (p *parser) isOther(a Arg) bool {
	word, what := a.Name.Value, ""
	switch {
	case strings.Contains(word, tool+":"):
		what = "directive"
	case strings.HasPrefix(word, "//"):
		what = "comment"
	default:
		return false
	}
	p.add(a.Name.Pos, "unexpected %q; a %s stands on a line of its own", word, what)
	return true
}

// isBare reports whether a has a value that is not quoted.
func (a Arg) isBare() bool { return !a.Value.IsZero() && a.Value.Pos == a.Name.At(len(a.Name.Value))+1 }

// arg reads one argument. If it is broken it has been reported, and reading can go on behind it.
func (s *scanner) arg() (Arg, bool) {
	start := s.next
	if strings.ContainsRune("\"`", s.peek()) {
		s.value(Text{})
		s.add(s.At(start), "a value without a name; expected name=value")
		return Arg{}, false
	}
	name := s.skip(func(r rune) bool { return r != '=' && !unicode.IsSpace(r) })
	space := s.skip(unicode.IsSpace)
	if s.peek() != '=' {
		return Arg{Name: name}, true
	}
	equals := s.At(s.next)
	s.next++
	switch {
	case name.Value == "":
		s.add(equals, "missing name before =; expected name=value, and a value with spaces in quotes")
	case space.Value != "":
		s.add(equals, "a space before =; expected %s=value", name.Value)
	default:
		v, ok := s.value(name)
		return Arg{Name: name, Value: v}, ok
	}
	s.skip(isNoSpace)
	return Arg{}, false
}

// value reads what follows the = of name.
func (s *scanner) value(name Text) (Text, bool) {
	switch r := s.peek(); {
	case r == '"':
		return s.quoted(s.escaped)
	case r == '`':
		return s.quoted(s.raw)
	case strings.ContainsRune("'“”„‘’‚«»", r):
		s.add(s.At(s.next), "a value is quoted with \" or `, found %c", r)
		s.skip(isNoSpace)
		return Text{}, false
	case s.rest() == "" || unicode.IsSpace(r):
		s.add(name.Pos, "%s has no value; expected %[1]s=value, without a space", name.Value)
		return Text{}, false
	case r == '=':
		s.add(s.At(s.next), "a second =; expected %s=value", name.Value)
		s.skip(isNoSpace)
		return Text{}, false
	}
	v := s.skip(isNoSpace)
	if at := parted.FindStringIndex(v.Value); at != nil {
		s.add(v.At(at[0]), "unexpected %q; arguments are separated by spaces", []rune(v.Value[at[0]:])[0])
		return Text{}, false
	}
	if n := len(v.Value) - 1; v.Value[n] == ',' || v.Value[n] == ';' {
		s.add(v.At(n), "unexpected %s; arguments are separated by spaces", map[byte]string{',': "comma", ';': "semicolon"}[v.Value[n]])
		return Text{}, false
	}
	return v, true
}

// parted is where a bare value has another argument behind a punctuation mark, which may be of East Asian width.
var parted = regexp.MustCompile(`[,;，；、][a-z-]+=[^=]`)

// quoted reads a string with the given reader of its inside, which stops before the closing quote.
func (s *scanner) quoted(inside func() (Text, bool)) (Text, bool) {
	opening, quote := s.At(s.next), s.peek()
	s.next++
	v, ok := inside()
	if s.peek() != quote {
		s.add(opening, "missing closing %c", quote)
		return Text{}, false
	}
	s.next++
	if s.rest() != "" && !unicode.IsSpace(s.peek()) {
		behind, instead := s.skip(isNoSpace), ""
		if quote == '"' && strings.HasSuffix(behind.Value, `"`) {
			instead = `, or \" for a quote inside`
		}
		s.add(behind.Pos, "unexpected %q behind the closing quote; expected a space%s", behind.Value, instead)
		return Text{}, false
	}
	return v, ok
}

func (s *scanner) raw() (Text, bool) {
	return s.skip(func(r rune) bool { return r != '`' }), true
}

// escaped reads the inside of a Go string. It steps over a wrong escape, so that the rest of the line can be read.
func (s *scanner) escaped() (Text, bool) {
	start, ok := s.next, true
	var value []byte
	var source []int
	for s.rest() != "" && s.peek() != '"' {
		from := s.next
		char, valid := s.char()
		for range len(char) {
			source = append(source, from-start)
		}
		value, ok = append(value, char...), ok && valid
	}
	v := Text{Value: string(value), Pos: s.At(start)}
	if len(value) != s.next-start {
		v.source = append(source, s.next-start)
	}
	return v, ok
}

// char reads one byte of a Go string, or one escape, and returns what it stands for.
func (s *scanner) char() (string, bool) {
	start := s.next
	s.next++
	if s.Value[start] != '\\' {
		return s.Value[start:s.next], true
	}
	r, wide, tail, err := strconv.UnquoteChar(s.Value[start:], '"')
	if err != nil {
		_, n := utf8.DecodeRuneInString(s.rest())
		s.next += n
		s.add(s.At(start), "unknown escape %s; a backslash is \\\\, or quote with `", s.Value[start:s.next])
		return "", false
	}
	s.next = len(s.Value) - len(tail)
	if !wide {
		return string([]byte{byte(r)}), true
	}
	return string(r), true
}

func (s *scanner) rest() string { return s.Value[s.next:] }

// peek returns the next character, or utf8.RuneError at the end.
func (s *scanner) peek() rune {
	r, _ := utf8.DecodeRuneInString(s.rest())
	return r
}

// skip steps over the characters that are in, and returns them.
func (s *scanner) skip(in func(rune) bool) Text {
	start := s.next
	if n := strings.IndexFunc(s.rest(), func(r rune) bool { return !in(r) }); n >= 0 {
		s.next += n
	} else {
		s.next = len(s.Value)
	}
	return s.slice(start, s.next)
}

func isNoSpace(r rune) bool { return !unicode.IsSpace(r) }
