package load

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"
)

// strip returns a Go source without its functions, without its comments below the package clause and without blank lines; and
// its functions, without what stands in their bodies. A parser then has little to do. What a broken source gives is for it
// to judge.
func strip(src []byte) ([]byte, []function) {
	s := stripper{src: src, out: make([]byte, 0, len(src)/4), start: -1}
	s.header()
	for s.at < len(s.src) {
		s.step()
	}
	s.endFunction()
	return s.out, s.functions
}

// declares is the begin of a line that is no part of a function, whatever it seems where a brace is missing.
var declares = regexp.MustCompile(`(?m)^(func|type|var|const)\b`)

// hollow returns a Go source with spaces in the bodies of its functions, which cannot be told where a brace is missing.
func hollow(src []byte) []byte {
	s := stripper{src: src, start: -1}
	s.header()
	for s.at < len(s.src) {
		s.step()
	}
	out := bytes.Clone(src)
	for _, b := range s.bodies {
		body := out[b[0]+1 : max(b[0]+1, b[1]-1)]
		if declares.Match(body) {
			continue
		}
		for i, c := range body {
			if c != '\n' {
				body[i] = ' '
			}
		}
	}
	return out
}

// function is one that was cut out of a source.
type function struct {
	name string // its own, or that of the receiver's type
	text string // with an empty body
}

type stripper struct {
	src, out  []byte
	functions []function
	bodies    [][2]int // where in src those of the functions begin and end
	at        int
	depth     int  // of parentheses, brackets and braces
	last      byte // of what is not space
	ended     bool // a line has ended since
	start     int  // where in out the function begins whose signature this is, or -1
}

// header copies what precedes the package clause: build constraints may set the version of the language.
func (s *stripper) header() {
	for s.at < len(s.src) {
		switch c := s.src[s.at]; {
		case c == '/':
			end := s.at + s.comment()
			s.out = append(s.out, s.src[s.at:end]...)
			s.at = end
		case c <= ' ' || c >= 0x80: // a byte order mark, perhaps
			s.out = append(s.out, c)
			s.at++
		default:
			return
		}
	}
}

// step copies or drops a token, or a part of one.
func (s *stripper) step() {
	c := s.src[s.at]
	switch n := s.literal(); {
	case c == '/' && n > 1:
		s.space(n)
		return
	case n > 0:
		s.out = append(s.out, s.src[s.at:s.at+n]...)
		s.at += n
	case c <= ' ':
		s.space(1)
		return
	case c == '{' && s.start >= 0 && s.depth == 0 && !s.follows("struct") && !s.follows("interface"):
		s.out = append(s.out, "{}"...)
		end := s.at + s.body()
		s.bodies = append(s.bodies, [2]int{s.at, end})
		s.at = end
		s.endFunction()
		c = '}'
	default:
		s.word(c)
	}
	s.last, s.ended = c, false
}

// word copies a word, or a byte that is in none.
func (s *stripper) word(c byte) {
	end := s.at + 1
	switch c {
	case '(', '[', '{':
		s.depth++
	case ')', ']', '}':
		s.depth--
	default:
		for isWord(c) && end < len(s.src) && isWord(s.src[end]) {
			end++
		}
		if s.depth == 0 && s.begins() && !s.follows("func") {
			s.endFunction() // one without a body
			if string(s.src[s.at:end]) == "func" {
				s.start = len(s.out)
			}
		}
	}
	s.out = append(s.out, s.src[s.at:end]...)
	s.at = end
}

// endFunction cuts what was copied of a function.
func (s *stripper) endFunction() {
	if s.start < 0 {
		return
	}
	text := string(s.out[s.start:])
	s.functions = append(s.functions, function{nameIn(text), text})
	s.out, s.start = s.out[:s.start], -1
}

// nameIn returns the name of a function that text declares, or that of its receiver's type.
func nameIn(text string) string {
	text = strings.TrimLeft(strings.TrimPrefix(text, "func"), " \n")
	notWord := func(r rune) bool { return r < utf8.RuneSelf && !isWord(byte(r)) }
	if !strings.HasPrefix(text, "(") {
		return text[:max(0, strings.IndexFunc(text, notWord))]
	}
	text = strings.TrimRightFunc(text[:max(0, strings.IndexAny(text, "[)"))], notWord)
	return text[strings.LastIndexFunc(text, notWord)+1:]
}

// begins reports whether a declaration begins here: after a semicolon, or a line whose end stands for one.
func (s *stripper) begins() bool {
	return s.last == ';' || s.ended && (isWord(s.last) || bytes.IndexByte([]byte(")]}\"`'"), s.last) >= 0)
}

// follows reports whether what was copied ends with this word.
func (s *stripper) follows(word string) bool {
	out := bytes.TrimRight(s.out, " \t\r\n")
	before, ok := bytes.CutSuffix(out, []byte(word))
	return ok && (len(before) == 0 || !isWord(before[len(before)-1]))
}

// space leaves out n bytes of space or comment. They stand for a space, or for a line's end if they have one.
func (s *stripper) space(n int) {
	if bytes.IndexByte(s.src[s.at:s.at+n], '\n') >= 0 {
		if !s.ended {
			s.out = append(s.out, '\n')
		}
		s.ended = true
	} else if !s.ended {
		s.out = append(s.out, ' ')
	}
	s.at += n
}

// body returns how long the body is that begins here.
func (s *stripper) body() int {
	rest, depth := *s, 0
	for rest.at < len(s.src) {
		n := 1
		switch s.src[rest.at] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return rest.at + 1 - s.at
			}
		case '"', '\'', '`', '/':
			n = rest.literal()
		}
		rest.at += n
	}
	return len(s.src) - s.at
}

// literal returns how long the comment or the literal with quotes is that begins here; 0 if none does, and 1 for a mere slash.
func (s *stripper) literal() int {
	quote := s.src[s.at]
	switch quote {
	case '/':
		return s.comment()
	case '`':
		if n := bytes.IndexByte(s.src[s.at+1:], '`'); n >= 0 {
			return n + 2
		}
		return len(s.src) - s.at
	case '"', '\'':
		for i := s.at + 1; i < len(s.src); i++ {
			switch s.src[i] {
			case '\\':
				i++
			case quote, '\n':
				return i + 1 - s.at
			}
		}
		return len(s.src) - s.at
	}
	return 0
}

// comment returns how long the comment is that begins here; 1 if this is another slash.
func (s *stripper) comment() int {
	rest := s.src[s.at:]
	end := -1
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		if end = bytes.IndexByte(rest, '\n'); end >= 0 {
			return end
		}
	case bytes.HasPrefix(rest, []byte("/*")):
		if end = bytes.Index(rest[2:], []byte("*/")); end >= 0 {
			return end + 4
		}
	default:
		return 1
	}
	return len(rest)
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c >= 0x80
}
