package annotations

import (
	"go/ast"
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const tool = "ratelimit"

// Head is the beginning of every directive.
const Head = "//" + tool + ":"

// directive returns the directive in c, without its arguments, and the rest of the line. It adds an error if c only looks like a
// directive. It accepts every directive of this tool that ast.ParseDirective accepts, and more, such as //ratelimit:Rule, to
// say what is wrong with them.
func (p *parser) directive(c *ast.Comment) (d Directive, rest Text, ok bool) {
	p.line = Text{Value: c.Text, Pos: c.Slash}
	name, ok := strings.CutPrefix(c.Text, Head)
	if !ok || strings.IndexFunc(name, isBlank) == 0 && strings.TrimSpace(name) != "" {
		p.nearMiss(c)
		return Directive{}, Text{}, false
	}
	if len(c.Text) > maxDirective {
		p.errorf(c.Slash, "this directive is %d bytes long; at most %d are possible", len(c.Text), maxDirective)
		return Directive{}, Text{}, false
	}
	if n := strings.IndexFunc(name, unicode.IsSpace); n >= 0 {
		name = name[:n]
	}
	end := len(Head) + wordLen(name)
	d = Directive{Pos: c.Slash, Verb: p.line.slice(len(Head), end)}
	return d, p.line.slice(end, len(c.Text)), p.verb(d.Verb, c.Text[end:len(Head)+len(name)])
}

// verb reports whether v is a verb. The text behind follows it without a space and must be empty.
func (p *parser) verb(v Text, behind string) bool {
	known := LookUp(v.Value) != nil
	switch {
	case known && behind == "":
		return true
	case known:
		p.errorf(v.At(len(v.Value)), "unexpected %q after the verb %s; expected a space", behind, v.Value)
	case v.Value == "":
		p.errorf(v.Pos-1, "missing verb after the colon; expected %s", list(VerbNames, "or"))
	case strings.HasPrefix(behind, "=") && isOneOf(v.Value, argumentNames):
		p.errorf(v.Pos, "missing verb before the argument %s; expected %s", v.Value, list(VerbNames, "or"))
	default:
		p.unknown("verb", v, VerbNames)
	}
	return false
}

// wordLen returns the length of the prefix of s that consists of letters, digits, hyphens and underscores.
func wordLen(s string) int {
	n := strings.IndexFunc(s, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_'
	})
	if n < 0 {
		return len(s)
	}
	return n
}

// scanner splits the text after a verb into arguments. It cannot use ast.Directive.ParseArgs, which splits name="a b" at the
// space.
type scanner struct {
	*parser
	Text     // the text after the verb
	next int // the index in Value of the next byte to read
}

// scan returns the arguments in rest. A word without "=", such as a flag, becomes a name without a value.
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
		case broken && (nameless || ok && a.Value.IsZero()): // the rest of a broken argument, which has its error already
			s.errs = s.errs[:before]
			continue
		case nameless && last >= 0 && args[last].isBare(): // the rest of the previous value
			args = args[:last]
		}
		if broken = !ok; ok {
			args = append(args, a)
		}
	}
	return args
}

// isOther adds an error if a is not an argument but the beginning of a comment or of another directive.
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
	p.errorf(a.Name.Pos, "unexpected %q; a %s stands on a line of its own", word, what)
	return true
}

// isBare reports whether a has a value that is not quoted.
func (a Arg) isBare() bool { return !a.Value.IsZero() && a.Value.Pos == a.Name.At(len(a.Name.Value))+1 }

// arg reads one argument. If the argument is broken, arg adds an error and skips it.
func (s *scanner) arg() (Arg, bool) {
	start := s.next
	if strings.ContainsRune("\"`", s.peek()) {
		s.value(Text{})
		s.errorf(s.At(start), "a value without a name; expected name=value")
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
		s.errorf(equals, "missing name before =; expected name=value, and a value with spaces in quotes")
	case space.Value != "":
		s.errorf(equals, "a space before =; expected %s=value", name.Value)
	default:
		v, ok := s.value(name)
		return Arg{Name: name, Value: v}, ok
	}
	s.skip(isNoSpace)
	return Arg{}, false
}

// value reads the value after the = of the argument name.
func (s *scanner) value(name Text) (Text, bool) {
	r := s.peek()
	if r == '"' || r == '`' {
		return s.quoted()
	}
	v := s.skip(isNoSpace)
	at := separator.FindStringIndex(v.Value)
	switch {
	case v.Value == "":
		s.errorf(name.Pos, "%s has no value; expected %[1]s=value, without a space", name.Value)
	case strings.ContainsRune("'“”„‘’‚«»", r):
		s.errorf(v.Pos, "a value is quoted with \" or `, found %c", r)
	case r == '=':
		s.errorf(v.Pos, "a second =; expected %s=value", name.Value)
	case at != nil:
		s.errorf(v.At(at[0]), "unexpected %q; arguments are separated by spaces", []rune(v.Value[at[0]:])[0])
	default:
		return v, true
	}
	return Text{}, false
}

// separator matches a comma or semicolon at the end of a bare value, or before another argument, as in 1,per=1m. It may be East Asian.
var separator = regexp.MustCompile(`[,;，；、]([a-z-]+=[^=]|$)`)

// quoted reads a Go string.
func (s *scanner) quoted() (Text, bool) {
	opening, quote, length := s.next, s.peek(), stringLen(s.rest())
	if length == 0 {
		s.errorf(s.At(opening), "missing closing %c", quote)
		s.next = len(s.Value)
		return Text{}, false
	}
	s.next += length
	inside := s.slice(opening+1, s.next-1)
	if behind := s.skip(isNoSpace); behind.Value != "" {
		instead := ""
		if quote == '"' && strings.HasSuffix(behind.Value, `"`) {
			instead = `, or \" for a quote inside`
		}
		s.errorf(behind.Pos, "unexpected %q after the closing quote; expected a space%s", behind.Value, instead)
		return Text{}, false
	}
	if quote == '`' {
		return inside, true
	}
	return s.unescaped(inside)
}

// unescaped returns the value of a Go string whose source, without the quotes, is t.
func (p *parser) unescaped(t Text) (Text, bool) {
	var value []byte
	var positions []token.Pos
	ok := true
	for at := 0; at < len(t.Value); {
		char, n := t.Value[at:at+1], 1
		if char == `\` {
			r, wide, tail, err := strconv.UnquoteChar(t.Value[at:], '"')
			if n = len(t.Value) - at - len(tail); err != nil {
				_, width := utf8.DecodeRuneInString(t.Value[at+1:])
				n, ok = 1+width, false
				p.errorf(t.At(at), "unknown escape %s; a backslash is \\\\, or quote with `", t.Value[at:at+n])
			}
			if char = string([]byte{byte(r)}); wide {
				char = string(r)
			}
		}
		for range len(char) {
			positions = append(positions, t.At(at))
		}
		value, at = append(value, char...), at+n
	}
	if len(value) == len(t.Value) {
		return t, ok
	}
	return Text{string(value), t.Pos, append(positions, t.At(len(t.Value)))}, ok
}

func (s *scanner) rest() string { return s.Value[s.next:] }

// peek returns the next character, or utf8.RuneError at the end.
func (s *scanner) peek() rune {
	r, _ := utf8.DecodeRuneInString(s.rest())
	return r
}

// skip reads and returns the characters up to the first for which in is false.
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

// isBlank reports whether nobody sees r.
func isBlank(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }
