package annotations

import (
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// lookalike splits a line that may have been meant as a directive: what stands before the tool's name, that name, what parts
// it from the verb, the verb, and the rest. A second // in front matches nothing: so is a directive switched off.
var lookalike = regexp.MustCompile(`^(\s*[@+#!/]?\s*)((?i:rate[-_ ]limit)|[\pL\d]+)(\s*[:.;=/-]?\s*)([\pL\d_-]*)(.*)$`)

// nearMiss reports c if it is no directive but looks like one, at the first byte that would have to be another.
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
	p.add(c.Slash+token.Pos(i), "%q is no directive; write %s", "//"+found, fix)
	if !strings.HasPrefix(c.Text[end:], "=") { // else a verb is missing, and what was found is an argument
		p.fix(c.Slash, c.Slash+token.Pos(end), fix)
	}
}

// blockMiss reports the lines of a block comment. They all stand at its beginning: the text of a block lacks the carriage
// returns of its source, so that nothing behind them can be counted.
func (p *parser) blockMiss(c *ast.Comment, block string) {
	for line := range strings.Lines(block) {
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, "* \t"), "//"+tool+":"); ok && p.doc {
			p.add(c.Slash, "//%s:%s in a block comment takes no effect; write it on a line of its own, outside of the comment", tool, strings.TrimSpace(rest))
			continue
		}
		if found, fix := meant(strings.Trim(line, "* \t\r\n")); fix != "" {
			p.add(c.Slash, "%q in a block comment is no directive; write %s on a line of its own", found, fix)
		}
	}
}

// IsSuspect reports whether a line of source has a directive in it, or a comment that looks like one, in which package
// annotations might find something. It may be wrong about text in quotes. A directive for vet alone is left out.
func IsSuspect(line string) bool {
	for rest := line; ; {
		_, behind, ok := strings.Cut(rest, "//")
		if !ok {
			break
		}
		p := &parser{}
		d, _, ok := p.find(&ast.Comment{Text: "//" + behind})
		if ok && d.Verb.Value == "bare" {
			return false
		}
		if ok || len(p.errs) > 0 {
			return true
		}
		rest = behind
	}
	if _, inside, ok := strings.Cut(line, "/*"); ok {
		line = inside
	}
	line, _, _ = strings.Cut(line, "*/")
	_, fix := meant(strings.Trim(line, "* \t\r\n"))
	return fix != ""
}

// meant returns the directive that line, without its comment marks, is a slip of, and as what it was found; or "" for prose.
func meant(line string) (found, fix string) {
	if !strings.ContainsAny(line, ":=") {
		return "", "" // as most comments are
	}
	m := lookalike.FindStringSubmatch(line)
	if m == nil {
		return "", ""
	}
	lead, name, parting, verb, rest := m[1], m[2], m[3], m[4], m[5]
	found = strings.TrimSuffix(line, rest)
	isTool := strings.EqualFold(strings.NewReplacer("-", "", "_", "", " ", "").Replace(name), tool)
	switch {
	case isTool && (lead == "" || strings.ContainsAny(lead, "@+")) && isOneOf(verb, argumentNames) && rest != "" && rest[0] == '=':
		verb = "rule" // it is missing; most directives are rules
	case isTool && isSlip(parting, verb, rest):
		verb = Nearest(verb, verbNames)
	case isTypo(name, parting, verb, rest):
		// The verb is right.
	default:
		return "", ""
	}
	return found, "//" + tool + ":" + verb
}

// isSlip reports whether what follows the tool's name is a directive's rather than a sentence's. "ratelimit: see below" and
// "ratelimit: rule of thumb" are sentences.
func isSlip(parting, verb, rest string) bool {
	exact := slices.ContainsFunc(verbNames, func(v string) bool { return strings.EqualFold(v, verb) })
	ends := strings.TrimSpace(rest) == ""
	switch {
	case !strings.Contains(parting, ":"):
		return exact && beginsArguments(parting, rest)
	case Nearest(verb, verbNames) == "":
		return false
	case parting == ":" && strings.EqualFold(verb, "fallback"):
		return len(strings.Fields(rest)) <= 1
	case parting == ":" && strings.EqualFold(verb, "bare"):
		return true
	case parting == ":" || exact:
		return ends || beginsArguments(parting, rest)
	}
	return beginsArguments(parting, rest)
}

// isTypo reports whether name is the tool's but for one slip, or two in front of arguments, and everything else is right. Other
// tools have similar names: ratelimiter is none.
func isTypo(name, parting, verb, rest string) bool {
	if parting != ":" || !isOneOf(verb, verbNames) {
		return false
	}
	name = strings.ToLower(name)
	switch distance([]rune(name), []rune(tool)) {
	case 1:
		return isSlip(parting, verb, rest)
	case 2:
		return !strings.HasPrefix(name, tool) && beginsArguments(parting, rest)
	}
	return false
}

// beginsArguments reports whether s goes on as a directive does behind its verb: after a space, or after a colon and a bracket, as
// in ratelimit:rule(limit=1). Without the colon, as in ratelimit.Rule(key=x), a bracket is one of code.
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
