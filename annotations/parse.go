package annotations

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"unicode"
)

// parser reads directives and collects their errors.
type parser struct {
	line Text // the current directive
	doc  bool // the directive stands in the doc comment of a declaration
	errs Diagnostics
}

// errorf adds an error about the rest of the word at pos.
func (p *parser) errorf(pos token.Pos, format string, args ...any) {
	p.errs.Add(pos, format, args...)
	if i := int(pos - p.line.Pos); i >= 0 && i < len(p.line.Value) {
		p.errs[len(p.errs)-1].End = pos + token.Pos(max(1, wordEnd(p.line.Value[i:])))
	}
}

// wordEnd returns the length of the first word of s, which ends at a space or a quote.
func wordEnd(s string) int {
	if i := strings.IndexFunc(s, func(r rune) bool { return unicode.IsSpace(r) || r == '"' || r == '`' }); i >= 0 {
		return i
	}
	return len(s)
}

// fix sets the fix of the last error.
func (p *parser) fix(pos, end token.Pos, text string) {
	p.errs[len(p.errs)-1].Fix = &Fix{pos, end, text}
}

// unknown reports that word is not a valid word, and suggests the nearest one.
func (p *parser) unknown(what string, word Text, valid []string) {
	near := Nearest(word.Value, valid)
	if other := otherWords[strings.ToLower(word.Value)]; near == "" && isOneOf(other, valid) {
		near = other
	}
	if near == "" {
		p.errorf(word.Pos, "unknown %s %q; expected %s", what, word.Value, list(valid, "or"))
		return
	}
	p.errorf(word.Pos, "unknown %s %q; did you mean %s?", what, word.Value, near)
	p.fix(word.Pos, word.At(len(word.Value)), near)
}

const (
	maxRules     = 100      // rules in a comment group
	maxValue     = 4 << 10  // bytes of a value
	maxDirective = 64 << 10 // bytes of a directive
)

// Parse reads the directives of a comment group, which may be nil. The result also has the directives with errors, marked as
// bad, with the arguments that could be read.
func Parse(cg *ast.CommentGroup) (Group, Diagnostics) {
	var g Group
	p := &parser{doc: true}
	if cg == nil {
		return g, nil
	}
	for _, c := range cg.List {
		before := len(p.errs)
		d, rest, ok := p.directive(c)
		switch {
		case !ok:
			continue
		case d.Verb.Value == "bare":
			p.errorf(d.Verb.Pos, "%s", misplacedBare)
			continue
		case d.Verb.Value == "rule" && len(g.Rules) == maxRules:
			p.errorf(d.Verb.Pos, "more than %d rules stand here; the others are not read", maxRules)
			return g, p.errs.Coded("directive")
		}
		d.Args = p.scan(rest)
		rule := Rule{}
		switch verb := LookUp(d.Verb.Value); verb.Name {
		case "rule":
			p.checkArguments(&d, verb, func(a *Argument, v Text) { rule.set(p, a, v) })
		case "fallback":
			p.fallback(&d, before)
		default:
			p.checkArguments(&d, verb, func(a *Argument, v Text) { p.value(a, v) })
		}
		d.Bad = len(p.errs) > before
		rule.Directive = d
		g.addDirective(p, rule)
	}
	return g, p.errs.Coded("directive")
}

// addDirective adds the directive of r, and r itself if the directive is a rule.
func (g *Group) addDirective(p *parser, r Rule) {
	g.All = append(g.All, r.Directive)
	verb := r.Verb.Value
	only := map[string]*Directive{"wrap": &g.Wrap, "guard": &g.Guard, "skip": &g.Skip, "plain": &g.Plain, "fallback": &g.Fallback}[verb]
	switch {
	case verb == "rule":
		g.Rules = append(g.Rules, r)
	case only.IsZero():
		*only = r.Directive
	default:
		p.errorf(r.Verb.Pos, "a second %s; only one may stand here", verb)
	}
}

// ParseRule reads the arguments of a rule, such as limit=10 per=1m.
func ParseRule(arguments string) (Rule, error) {
	comment := &ast.Comment{Slash: 1, Text: Head + "rule " + arguments}
	group, errs := Parse(&ast.CommentGroup{List: []*ast.Comment{comment}})
	if len(errs) > 0 {
		return Rule{}, errs.OneLine()
	}
	return group.Rules[0], nil
}

const wantQuotes = "unexpected %q; expected name=value, and a value with spaces in quotes"

// checkArguments checks the arguments of d, keeps the valid ones in d, and passes each valid argument to set.
func (p *parser) checkArguments(d *Directive, verb *Verb, set func(*Argument, Text)) {
	args := d.Args
	d.Args = nil
	stray := false // the previous word is not an argument
	for n, a := range args {
		row := verb.Argument(a.Name.Value)
		noValue := a.Value.IsZero()
		if row == nil {
			if !noValue || !stray {
				p.unexpected(a, verb)
			}
			stray = noValue
			continue
		}
		if stray && noValue {
			continue // a word of a text without quotes, which may also be the name of an argument, such as per
		}
		stray = false
		if _, twice := d.Arg(a.Name.Value); twice {
			p.errorf(a.Name.Pos, "%s is given twice", a.Name.Value)
			continue
		}
		goesOn := a.isBare() && row.Kind != FlagKind && n+1 < len(args) && isStray(args[n+1], verb)
		if goesOn && row.Kind.isSpaced() { // the next word probably belongs to the value
			p.errorf(args[n+1].Name.Pos, wantQuotes, args[n+1].Name.Value)
			stray = true
			continue
		}
		before := len(p.errs)
		if p.hasValue(a, row) {
			set(row, a.Value)
		}
		if len(p.errs) == before {
			d.Args = append(d.Args, a)
		} else {
			stray = goesOn
		}
	}
}

// isStray reports whether a is a single word that is neither the name of an argument nor a misspelt flag.
func isStray(a Arg, verb *Verb) bool {
	return a.Value.IsZero() && verb.Argument(a.Name.Value) == nil && !verb.isFlag(Nearest(a.Name.Value, verb.names()))
}

// hasValue reports whether a has a value as its row demands: none for a flag, and some text for everything else. It adds an
// error if not.
func (p *parser) hasValue(a Arg, row *Argument) bool {
	switch v := a.Value; {
	case row.Kind == FlagKind && !v.IsZero():
		p.errorf(v.Pos, "%s takes no value, found %q", row.Name, v.Value)
	case row.Kind == FlagKind:
		return true
	case v.IsZero():
		p.errorf(a.Name.Pos, "%s has no value; expected %s", row.Name, row.want())
	case len(v.Value) > maxValue:
		p.errorf(v.Pos, "%s is %d bytes long; at most %d are possible", row.Name, len(v.Value), maxValue)
	case strings.TrimSpace(v.Value) == "":
		p.errorf(v.Pos, "%s is empty; expected %s", row.Name, row.want())
	default:
		return true
	}
	return false
}

// unexpected reports an argument that the verb does not take.
func (p *parser) unexpected(a Arg, verb *Verb) {
	word, valid := a.Name.Value, verb.names()
	before, _, colon := strings.Cut(word, ":")
	meant := otherNames[strings.ToLower(word)]
	switch {
	case len(valid) == 0:
		p.errorf(a.Name.Pos, "unexpected %q; %s takes no arguments", word, verb.Name)
	case colon && isOneOf(before, valid):
		p.errorf(a.Name.Pos, "unexpected %q; expected %s=value", word, before)
	case verb.Argument("mode") != nil && otherWords[strings.ToLower(word)] == "shadow":
		p.errorf(a.Name.Pos, "unexpected %q; write mode=shadow", word)
	case isOneOf(word, argumentNames):
		p.errorf(a.Name.Pos, "%s is not an argument of %s, which takes %s", word, verb.Name, list(valid, "and"))
	case isOneOf(word, VerbNames):
		p.errorf(a.Name.Pos, "unexpected %q; it is a directive of its own, //%s:%[1]s", word, tool)
	case a.Value.IsZero() && verb.takenBy(word) != "":
		p.errorf(a.Name.Pos, "unexpected %q; expected %s=%[1]s", word, verb.takenBy(word))
	case a.Value.IsZero() && !verb.isFlag(Nearest(word, valid)):
		p.errorf(a.Name.Pos, wantQuotes, word)
	case Nearest(word, valid) == "" && isOneOf(meant, valid):
		p.errorf(a.Name.Pos, "unknown argument %q; did you mean %s?", word, meant)
		p.fix(a.Name.Pos, a.Name.At(len(word)), meant)
	default:
		p.unknown("argument", a.Name, valid)
	}
}

// set sets one argument of the rule to the value v.
func (r *Rule) set(p *parser, a *Argument, v Text) {
	switch a.Kind {
	case TemplateKind:
		*map[string]*Template{"key": &r.Key, "distinct": &r.Distinct, "message": &r.Message}[a.Name] = p.parseTemplate(v)
	case AmountKind:
		*map[string]*Amount{"limit": &r.Limit, "cost": &r.Cost}[a.Name] = p.parseAmount(a.Name, v)
	case ExprKind:
		*map[string]*Expr{"when": &r.When, "settle": &r.Settle, "pause": &r.Pause, "anchor": &r.Anchor}[a.Name] = p.parseExpr(a.Name, v)
	case IdentKind: // hold
		p.value(a, v)
		r.Hold = v
	default:
		r.Values = append(r.Values, p.value(a, v))
	}
}

// fallback reads the only argument of d, the function to call. If d has no argument, one error replaces all errors that were
// found in d. Those errors begin at index before.
func (p *parser) fallback(d *Directive, before int) {
	const want = "a function or a method: Func, .Method or Type.Method"
	args := d.Args
	d.Args = nil
	if len(args) == 0 {
		p.errs = p.errs[:before]
		p.errorf(d.Verb.Pos, "fallback names no function; expected %s", want)
		return
	}
	a := args[0]
	qualifier, name, dotted := strings.Cut(a.Name.Value, ".")
	if !dotted {
		qualifier, name = "", qualifier
	}
	switch {
	case !a.Value.IsZero():
		p.errorf(a.Name.Pos, "unexpected %s=; write the function without a name, as in //ratelimit:fallback sendLater", a.Name.Value)
	case !token.IsIdentifier(name) || qualifier != "" && !token.IsIdentifier(qualifier):
		p.errorf(a.Name.Pos, "unexpected %q; expected %s", a.Name.Value, want)
	case len(args) > 1:
		p.errorf(args[1].Name.Pos, "unexpected %q after the function; fallback takes one", args[1].Name.Value)
	default:
		d.Args = []Arg{{Value: a.Name}}
	}
}

func isOneOf(word string, valid []string) bool { return slices.Contains(valid, word) }
