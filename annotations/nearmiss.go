package annotations

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	colon = `[:：﹕︓︰։׃܃܄᛬⁚∶⦂ː˸꞉ꓽःઃ᠃᠉]`
	space = `[\s\pZ\p{Cf}\pM]*` // and characters that nobody sees
	word  = `[\pL\pN\pM\p{Cf}_-]`
)

// lookalikes split a line into what stands in front of its first word, that word, what stands behind it, the next word, and the rest. A go:
// is no word. The first word stands next to a colon or, as in rate:limit, has one.
var lookalikes = [...]*regexp.Regexp{lookalike(word+`+`, `+`), lookalike(word+`+`+colon+word+`+`, `*`)}

func lookalike(first, colons string) *regexp.Regexp {
	const lead = space + `(?:[@+#!/＠＋＃！／]|` + colon + `)?` + space + `(?:(?i:go)` + space + colon + space + `)?`
	return regexp.MustCompile(`^(` + lead + `)(` + first + `)(` + space + colon + colons + space + `)(` + word + `*)(.*)$`)
}

// partsOf returns the parts of a line whose first word stands next to a colon and may be the name of the tool, or nil.
func partsOf(line string) (parts []string, edits int) {
	edits = 4
	for _, l := range lookalikes {
		m := l.FindStringSubmatch(line)
		if m == nil || len(m[2]) > 8*len(tool) {
			continue
		}
		name := folded(m[2])
		d := distance([]rune(name), []rune(tool))
		if d < edits && (d <= 2 || strings.HasPrefix(name, tool)) {
			parts, edits = m, d
		}
	}
	return parts, edits
}

// A suspect is a line that may be meant as a directive and is none: its first word is the name of the tool, or nearly so, and stands next to
// a colon. Every other line is prose.
type suspect struct {
	found   string // the beginning of the line, which is wrong
	meant   string // the directive to write instead
	likely  bool   // a verb follows
	certain bool   // the line is a directive once this is written, perhaps with other mistakes
}

// suspectIn returns what is suspect in a line without its comment marks. Two edits make other words of the tool's name, such as pageLimit, so
// there a rule must follow.
func suspectIn(line string) (s suspect, ok bool) {
	m, edits := partsOf(line)
	if m == nil {
		return s, false
	}
	verb, rest := Nearest(folded(m[4]), VerbNames), m[5]
	lacksVerb := isOneOf(strings.ToLower(m[4]), argumentNames) && strings.HasPrefix(rest, "=")
	if lacksVerb {
		verb, rest = "rule", " "+m[4]+rest // most directives are rules
	}
	reads := verb == "bare" || verb != "" && isDirective(Head+verb+rest)
	arguments := slices.ContainsFunc(strings.Fields(rest), func(word string) bool {
		name, _, ok := strings.Cut(word, "=")
		return ok && isOneOf(name, argumentNames)
	})
	isRule := reads && arguments
	last, _ := utf8.DecodeLastRuneInString(m[3])
	spaced := m[1] != "" && unicode.IsSpace(last) // as in a sentence
	if s.likely = verb != "" && !spaced || isRule; s.likely {
		s.found, s.meant = m[1]+m[2]+m[3]+m[4], Head+verb
		s.certain = !lacksVerb && (isRule || edits == 0 && (reads || arguments))
	} else {
		s.found, s.meant = strings.TrimRightFunc(m[1]+m[2]+m[3], unicode.IsSpace), Head+"rule"
	}
	return s, edits < 2 || strings.HasPrefix(folded(m[2]), tool) || isRule
}

// isDirective reports whether text is a directive without mistakes.
func isDirective(text string) bool {
	_, errs := Parse(&ast.CommentGroup{List: []*ast.Comment{{Slash: 1, Text: text}}})
	return len(errs) == 0
}

// folded returns the letters and digits of s in lower case. Letters of full width become those of ASCII.
func folded(s string) string {
	return strings.Map(func(r rune) rune {
		if '！' <= r && r <= '～' {
			r -= '！' - '!'
		}
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// nearMiss reports the comment c if it is suspect. An error stands at the first wrong byte.
func (p *parser) nearMiss(c *ast.Comment) {
	if block, ok := strings.CutPrefix(c.Text, "/*"); ok {
		p.blockMiss(c, strings.TrimSuffix(block, "*/"))
		return
	}
	s, ok := suspectIn(c.Text[len("//"):])
	switch end := len("//" + s.found); {
	case !ok:
	case !s.likely:
		p.errs.Warn(c.Slash, "%q looks like a directive; write %s, or a sentence without the colon", c.Text[:end], s.meant)
	default:
		i := 0
		for s.meant[i] == c.Text[i] {
			i++
		}
		p.errorf(c.Slash+token.Pos(i), "%q is not a directive; write %s", c.Text[:end], s.meant)
		if s.certain {
			p.fix(c.Slash, c.Slash+token.Pos(end), s.meant)
		}
	}
}

// blockMiss reports lines of a block comment that are suspect. Outside of doc comments, those with the // may be switched off. All messages
// stand at the beginning of the comment: its text lacks the carriage returns of the source, so that offsets in the text are not offsets in
// the file.
func (p *parser) blockMiss(c *ast.Comment, block string) {
	for _, line := range textOf(block) {
		text, slashes := strings.CutPrefix(line, "//")
		switch s, ok := suspectIn(text); {
		case !ok || slashes && !p.doc:
		case slashes && s.likely:
			p.errorf(c.Slash, "%s in a block comment has no effect; write it on a line of its own, outside of the comment", line)
		default:
			p.errs.Warn(c.Slash, "%q in a block comment looks like a directive; write %s on a line of its own, or a sentence without the colon", s.found, s.meant)
		}
	}
}

var asterisks = regexp.MustCompile(`(?m)^[ \t]*\*+`)

// textOf returns the lines of a block comment without those of code, which are indented. The text begins where the first line does that is not
// empty or, if it stands behind the /*, where the comment ends.
func textOf(block string) (lines []string) {
	indent := func(line string) int {
		line = strings.ReplaceAll(line, "\t", "        ")
		return len(line) - len(strings.TrimLeft(line, " "))
	}
	all := strings.Split(asterisks.ReplaceAllString(block, ""), "\n")
	margin := indent(all[len(all)-1])
	for i, line := range all {
		text := strings.TrimSpace(line)
		if text != "" && len(lines) == 0 && i > 0 {
			margin = indent(line)
		}
		if text != "" && (i == 0 || indent(line) <= margin) {
			lines = append(lines, text)
		}
	}
	return lines
}

// Concerns reports whether a comment is a directive or suspect. It ignores bare directives, which only vet reads.
func Concerns(comment string) bool {
	p := &parser{doc: true}
	d, _, ok := p.directive(&ast.Comment{Text: comment})
	return ok && d.Verb.Value != "bare" || len(p.errs) > 0
}

// MayConcern reports whether a comment in a line of source may be a directive or suspect. It takes code and text in quotes for comments, too.
func MayConcern(line string) bool {
	texts := append(strings.SplitAfter(line, "//"), strings.SplitAfterN(line, "/*", 2)...)
	return slices.ContainsFunc(texts, func(text string) bool {
		found, _ := partsOf(strings.Trim(text, "* \t\r\n"))
		return found != nil
	})
}
