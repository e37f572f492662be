package annotations

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/period"
)

// The words that some arguments take.
var (
	algorithms = []string{"sliding-window", "fixed-window", "calendar", "sliding-counter", "token-bucket", "leaky-bucket"}
	scopes     = []string{"fleet", "instance"}
	modes      = []string{"enforce", "shadow", "trigger"}
	refunds    = []string{"error", "never"}
	onErrors   = []string{"deny", "allow", "local"}
)

// parser collects the errors on the way from text to values.
type parser struct{ errs Errors }

func (p *parser) add(pos token.Pos, format string, args ...any) {
	p.errs.Add(pos, format, args...)
}

// fix says how the last error is mended.
func (p *parser) fix(pos, end token.Pos, text string) {
	p.errs[len(p.errs)-1].Fix = &Fix{pos, end, text}
}

// Parse reads the directives of a comment group, which may be nil. A directive with errors is in the group all the same, as
// far as it could be read, and is marked as bad.
func Parse(cg *ast.CommentGroup) (Group, Errors) {
	var g Group
	p := &parser{}
	if cg == nil {
		return g, nil
	}
	for _, c := range cg.List {
		before := len(p.errs)
		d, rest, ok := p.find(c)
		if !ok {
			continue
		}
		d.Args = p.scan(rest)
		switch d.Verb.Value {
		case "rule":
			r := Rule{Directive: d}
			p.read(&r.Directive, r.arguments(p))
			r.Bad = len(p.errs) > before
			g.Rules = append(g.Rules, r)
		case "wrap":
			w := Wrap{Directive: d}
			p.read(&w.Directive, w.arguments(p))
			w.Bad = len(p.errs) > before
			g.Wraps = once(p, g.Wraps, w, d)
		case "skip":
			s := Skip{d}
			p.read(&s.Directive, nil)
			s.Bad = len(p.errs) > before
			g.Skips = once(p, g.Skips, s, d)
		case "fallback":
			f := Fallback{Directive: d}
			p.fallback(&f, before)
			f.Bad = len(p.errs) > before
			g.Fallbacks = once(p, g.Fallbacks, f, d)
		}
	}
	return g, p.errs
}

// once appends v, whose directive is d, to an empty slice.
func once[T any](p *parser, to []T, v T, d Directive) []T {
	if len(to) > 0 {
		p.add(d.Verb.Pos, "a second %s; only one may stand here", d.Verb.Value)
		return to
	}
	return append(to, v)
}

// argument is one that a verb takes: how its value is read, or what a flag sets.
type argument struct {
	name   string
	want   string
	read   func(Text)
	flag   *bool
	spaced bool     // its values often have spaces
	words  []string // that it takes
}

func (r *Rule) arguments(p *parser) []argument {
	return []argument{
		p.template("key", &r.Key),
		p.amount("limit", &r.Limit),
		p.duration("per", &r.Per),
		p.text("cron", &r.Cron, "a cron expression"),
		p.text("tz", &r.TZ, "a time zone"),
		p.oneOf("algorithm", &r.Algorithm, algorithms),
		p.count("burst", &r.Burst),
		p.amount("cost", &r.Cost),
		p.template("distinct", &r.Distinct),
		p.expr("when", &r.When),
		p.duration("wait", &r.Wait),
		p.template("message", &r.Message),
		p.word("name", &r.Name, "._-/"),
		p.oneOf("scope", &r.Scope, scopes),
		p.oneOf("mode", &r.Mode, modes),
		p.oneOf("refund", &r.Refund, refunds),
		p.oneOf("on-error", &r.OnError, onErrors),
		{name: "prepay", flag: &r.Prepay},
		p.duration("warmup", &r.Warmup),
		p.count("queue", &r.Queue),
		p.count("slices", &r.Slices),
		p.duration("block", &r.Block),
	}
}

func (w *Wrap) arguments(p *parser) []argument {
	return []argument{
		p.identifier("name", &w.Name),
		p.word("prefix", &w.Prefix, "._-/"),
		p.text("tz", &w.TZ, "a time zone"),
		p.oneOf("on-error", &w.OnError, onErrors),
	}
}

const wantQuotes = "unexpected %q; expected name=value, and a value with spaces in quotes"

// read reads the arguments of d, which are the given ones, and leaves those in d that are right.
func (p *parser) read(d *Directive, takes []argument) {
	args := d.Args
	d.Args = nil
	stray := false // the word before is none of the arguments
	for n, a := range args {
		i := slices.IndexFunc(takes, func(t argument) bool { return t.name == a.Name.Value })
		bare := a.Value.IsZero()
		if i < 0 {
			if !bare || !stray {
				p.unexpected(d, a, takes)
			}
			stray = bare
			continue
		}
		if stray && bare {
			continue // a word of a text whose quotes are missing, such as per
		}
		stray = false
		if _, twice := d.Arg(a.Name.Value); twice {
			p.add(a.Name.Pos, "%s is given twice", a.Name.Value)
			continue
		}
		goesOn := a.isBare() && takes[i].flag == nil && n+1 < len(args) && isStray(args[n+1], takes)
		if goesOn && takes[i].spaced { // this is not all of its value
			p.add(args[n+1].Name.Pos, wantQuotes, args[n+1].Name.Value)
			stray = true
			continue
		}
		before := len(p.errs)
		p.set(a, takes[i])
		if len(p.errs) == before {
			d.Args = append(d.Args, a)
		} else {
			stray = goesOn
		}
	}
}

// isStray reports whether a is a word that is none of the arguments, nor meant as one.
func isStray(a Arg, takes []argument) bool {
	return a.Value.IsZero() && !isOneOf(a.Name.Value, names(takes)) && Nearest(a.Name.Value, flags(takes)) == ""
}

// set gives a its meaning.
func (p *parser) set(a Arg, as argument) {
	switch v := a.Value; {
	case as.flag != nil && !v.IsZero():
		p.add(v.Pos, "%s takes no value, found %q", as.name, v.Value)
	case as.flag != nil:
		*as.flag = true
	case v.IsZero():
		p.add(a.Name.Pos, "%s has no value; expected %s", as.name, as.want)
	case strings.TrimSpace(v.Value) == "":
		p.add(v.Pos, "%s is empty; expected %s", as.name, as.want)
	default:
		as.read(v)
	}
}

// unexpected reports an argument that d does not take.
func (p *parser) unexpected(d *Directive, a Arg, takes []argument) {
	verb, word, valid := d.Verb.Value, a.Name.Value, names(takes)
	before, _, colon := strings.Cut(word, ":")
	switch {
	case len(takes) == 0:
		p.add(a.Name.Pos, "unexpected %q; %s takes no arguments", word, verb)
	case colon && isOneOf(before, valid):
		p.add(a.Name.Pos, "unexpected %q; expected %s=value", word, before)
	case isArgument(word):
		p.add(a.Name.Pos, "%s is no argument of %s, which takes %s", word, verb, list(valid, "and"))
	case isOneOf(word, verbs):
		p.add(a.Name.Pos, "unexpected %q; it is a directive of its own, //%s:%[1]s", word, tool)
	case a.Value.IsZero() && takenBy(word, takes) != "":
		p.add(a.Name.Pos, "unexpected %q; expected %s=%[1]s", word, takenBy(word, takes))
	case a.Value.IsZero() && Nearest(word, flags(takes)) == "":
		p.add(a.Name.Pos, wantQuotes, word)
	case Nearest(word, valid) == "" && isOneOf(elsewhere[strings.ToLower(word)], valid):
		p.add(a.Name.Pos, "unknown argument %q; did you mean %s?", word, elsewhere[strings.ToLower(word)])
	default:
		p.unknown("argument", a.Name, valid)
	}
}

// takenBy returns the name of the argument that takes word, or "".
func takenBy(word string, takes []argument) string {
	for _, t := range takes {
		if isOneOf(word, t.words) {
			return t.name
		}
	}
	return ""
}

// elsewhere is what other systems call the arguments.
var elsewhere = map[string]string{
	"window": "per", "interval": "per", "duration": "per", "every": "per", "time": "per", "within": "per",
	"rate": "limit", "max": "limit", "count": "limit", "frequency": "limit", "permits": "limit", "requests": "limit", "calls": "limit",
	"by": "key", "subject": "key", "if": "when", "condition": "when", "timezone": "tz", "zone": "tz",
	"schedule": "cron", "strategy": "algorithm", "weight": "cost", "timeout": "wait", "capacity": "burst", "error": "message",
}

// fallback reads the one argument of f, which has no name. If there is none, the errors from before on are about what stands there
// instead.
func (p *parser) fallback(f *Fallback, before int) {
	const want = "a function or a method: Func, .Method or Type.Method"
	args := f.Args
	f.Args = nil
	if len(args) == 0 {
		p.errs = p.errs[:before]
		p.add(f.Verb.Pos, "fallback of what? expected %s", want)
		return
	}
	a := args[0]
	qualifier, name, dotted := strings.Cut(a.Name.Value, ".")
	if !dotted {
		qualifier, name = "", qualifier
	}
	switch {
	case !a.Value.IsZero():
		p.add(a.Name.Pos, "unexpected %s=; the function stands alone, as in //ratelimit:fallback sendLater", a.Name.Value)
	case !token.IsIdentifier(name) || qualifier != "" && !token.IsIdentifier(qualifier):
		p.add(a.Name.Pos, "unexpected %q; expected %s", a.Name.Value, want)
	case len(args) > 1:
		p.add(args[1].Name.Pos, "unexpected %q behind the function; fallback takes one", args[1].Name.Value)
	default:
		f.Func = a.Name
		f.Args = []Arg{{Value: a.Name}}
	}
}

// The rest are the kinds of arguments.

func (p *parser) template(name string, to *Template) argument {
	return argument{name: name, want: "text with {expressions}", spaced: true, read: func(v Text) { *to = p.parseTemplate(v) }}
}

func (p *parser) amount(name string, to *Amount) argument {
	return argument{name: name, want: "an integer or an expression", spaced: true, read: func(v Text) { *to = p.parseAmount(name, v) }}
}

func (p *parser) duration(name string, to *time.Duration) argument {
	return argument{name: name, want: period.Want, read: func(v Text) { *to = p.parseDuration(name, v) }}
}

func (p *parser) count(name string, to *int64) argument {
	return argument{name: name, want: "an integer of at least 1", read: func(v Text) { *to = p.parseCount(name, v) }}
}

func (p *parser) expr(name string, to *Expr) argument {
	return argument{name: name, want: "an expression", spaced: true, read: func(v Text) { *to = p.parseExpr(name, v) }}
}

func (p *parser) text(name string, to *string, want string) argument {
	return argument{name: name, want: want, spaced: true, read: func(v Text) { *to = v.Value }}
}

func (p *parser) identifier(name string, to *string) argument {
	const want = "an identifier"
	return argument{name: name, want: want, read: func(v Text) {
		if *to = v.Value; !token.IsIdentifier(v.Value) || v.Value == "_" {
			p.add(v.Pos, "%s is %q; expected %s", name, v.Value, want)
		}
	}}
}

// word is a text of letters, digits and the given punctuation: names stand in keys, headers and metrics.
func (p *parser) word(name string, to *string, punctuation string) argument {
	want := "letters, digits and " + strings.Join(strings.Split(punctuation, ""), " ")
	return argument{name: name, want: want, read: func(v Text) {
		for i, r := range v.Value {
			if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9') && !strings.ContainsRune(punctuation, r) {
				p.add(v.At(i), "unexpected %q in %s; expected %s", r, name, want)
				return
			}
		}
		*to = v.Value
	}}
}

func (p *parser) oneOf(name string, to *string, valid []string) argument {
	return argument{name: name, want: list(valid, "or"), words: valid, read: func(v Text) {
		if *to = v.Value; !isOneOf(v.Value, valid) {
			p.unknown(name, v, valid)
		}
	}}
}

func isOneOf(word string, valid []string) bool { return slices.Contains(valid, word) }

func names(args []argument) []string {
	var words []string
	for _, a := range args {
		words = append(words, a.name)
	}
	return words
}

func flags(args []argument) []string {
	return names(slices.DeleteFunc(slices.Clone(args), func(a argument) bool { return a.flag == nil }))
}

// argumentNames are those of every verb.
func argumentNames() []string {
	return append(names(new(Rule).arguments(nil)), names(new(Wrap).arguments(nil))...)
}

func isArgument(word string) bool { return isOneOf(word, argumentNames()) }
