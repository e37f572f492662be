package annotations

import (
	"go/ast"
	"go/token"
	"regexp"
	"strings"
	"unicode"
)

// lookalike splits a line that may be meant as a directive. Its groups are the text before the tool's name, the name, the
// separator, the verb, and the rest. It does not match a line that begins with another //, which switches a directive off.
var lookalike = regexp.MustCompile(`^(\s*[@+#!/]?\s*)((?i:rate[-_ ]limit)|[\pL\d]+)(\s*[:.;=/-]?\s*)([\pL\d_-]*)(.*)$`)

// nearMiss reports the comment c if it is not a directive but looks like one. The error stands at the first wrong byte.
func (p *parser) nearMiss(c *ast.Comment) {
	if block, ok := strings.CutPrefix(c.Text, "/*"); ok {
		p.blockMiss(c, strings.TrimSuffix(block, "*/"))
		return
	}
	found, fix := meant(strings.TrimPrefix(c.Text, "//"))
	if fix == "" {
		return
	}
	i := 0
	for fix[i] == c.Text[i] {
		i++
	}
	end := len("//" + found)
	p.errorf(c.Slash+token.Pos(i), "%q is not a directive; write %s", "//"+found, fix)
	if !strings.HasPrefix(c.Text[end:], "=") { // else a verb is missing, and what was found is an argument
		p.fix(c.Slash, c.Slash+token.Pos(end), fix)
	}
}

// blockMiss reports lines of a block comment that look like directives. Those without the // may be prose. All messages stand at the
// beginning of the comment: its text lacks the carriage returns of the source, so that offsets in the text are not offsets in the file.
func (p *parser) blockMiss(c *ast.Comment, block string) {
	for line := range strings.Lines(block) {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, "* \t"), Head); ok && p.doc {
			p.errorf(c.Slash, "%s%s in a block comment has no effect; write it on a line of its own, outside of the comment", Head, strings.TrimSpace(rest))
			continue
		}
		if found, fix := meant(strings.Trim(line, "* \t\r\n")); fix != "" {
			p.errs.Warn(c.Slash, "%q in a block comment is not a directive; write %s on a line of its own", found, fix)
		}
	}
}

// IsSuspect reports whether a line of source contains a directive or a comment that looks like one. It may take text in quotes
// for a comment. It ignores bare directives, which only vet reads.
func IsSuspect(line string) bool {
	for _, rest, ok := strings.Cut(line, "//"); ok; _, rest, ok = strings.Cut(rest, "//") {
		p := &parser{}
		if d, _, is := p.directive(&ast.Comment{Text: "//" + rest}); is || len(p.errs) > 0 {
			return !is || d.Verb.Value != "bare"
		}
	}
	if _, inside, ok := strings.Cut(line, "/*"); ok {
		line = inside
	}
	line, _, _ = strings.Cut(line, "*/")
	_, fix := meant(strings.Trim(line, "* \t\r\n"))
	return fix != ""
}

// meant returns the directive that was probably meant by a line without its comment marks, and the beginning of the line that
// the directive replaces. It returns "" if the line is prose, such as "ratelimit: see below" or "ratelimit: rule of thumb".
//
// The name of the tool and a verb begin a directive if arguments follow. After a colon the line may also end there. A misspelt name, by one
// edit or, before arguments, by two, needs the colon and the verb as they are. Names that begin with the tool's, such as ratelimiter,
// belong to other tools and may differ by one edit at most.
func meant(line string) (found, fix string) {
	if !strings.ContainsAny(line, ":=") {
		return "", "" // a quick answer for most comments
	}
	m := lookalike.FindStringSubmatch(line)
	if m == nil {
		return "", ""
	}
	lead, parting, verb, rest := m[1], m[3], m[4], m[5]
	name := strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(m[2]))
	edits := distance([]rune(strings.ReplaceAll(name, " ", "")), []rune(tool))
	colon, tight := strings.Contains(parting, ":"), parting == ":"
	exact := isOneOf(strings.ToLower(verb), VerbNames)
	arguments := beginsArguments(parting, rest)
	ends := colon && (tight || exact) && strings.TrimSpace(rest) == "" ||
		tight && endsWith(strings.ToLower(verb), rest) || colon && lead == "" && name == tool && verb == "fallback" && endsWith(verb, rest)
	switch {
	case name == tool && (lead == "" || strings.ContainsAny(lead, "@+")) && isOneOf(verb, argumentNames) && strings.HasPrefix(rest, "="):
		verb = "rule" // the verb is missing, and most directives are rules
	case !arguments && !ends, edits == 0 && !colon && !exact, edits > 0 && !(tight && isOneOf(verb, VerbNames)),
		edits > 2, edits == 2 && (!arguments || strings.HasPrefix(name, tool)):
		return "", ""
	default:
		verb = Nearest(verb, VerbNames)
	}
	if verb == "" {
		return "", ""
	}
	return strings.TrimSuffix(line, rest), Head + verb
}

// endsWith reports whether a directive with this verb may end with a text that is no argument.
func endsWith(verb, rest string) bool {
	return verb == "bare" || verb == "fallback" && len(strings.Fields(rest)) == 1
}

// beginsArguments reports whether s, the text after a verb, begins with an argument. A space or, if the verb follows a colon, a
// bracket must stand before the argument, as in ratelimit:rule(limit=1). Without the colon the bracket is code, as in
// ratelimit.Rule(key=x).
func beginsArguments(parting, s string) bool {
	arguments := strings.TrimLeftFunc(s, unicode.IsSpace)
	if parting == ":" {
		arguments = strings.TrimLeft(arguments, "([{")
	}
	words := strings.Fields(arguments)
	if len(words) == 0 || arguments == s {
		return false
	}
	name, _, ok := strings.Cut(words[0], "=")
	return ok && Nearest(name, argumentNames) != "" || LookUp("rule").isFlag(words[0])
}
