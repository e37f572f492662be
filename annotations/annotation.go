package annotations

import (
	"go/token"
	"strings"
	"time"
	"unicode"
)

// Text is an unquoted value and the position of each of its bytes in the source.
type Text struct {
	Value string
	Pos   token.Pos // of the first byte of the value; after the opening quote of a quoted one

	// at[i] is the position of Value[i], for i from 0 to len(Value). It is nil if that is always Pos+i.
	at []token.Pos
}

// At returns the position of Value[i]. At(len(Value)) is the position just after the value.
func (t Text) At(i int) token.Pos {
	if t.at == nil {
		return t.Pos + token.Pos(i)
	}
	return t.at[i]
}

// slice returns the text of Value[i:j].
func (t Text) slice(i, j int) Text {
	s := Text{Value: t.Value[i:j], Pos: t.At(i)}
	if t.at != nil {
		s.at = t.at[i : j+1]
	}
	return s
}

// trim returns t without the spaces around it.
func (t Text) trim() Text {
	left := len(t.Value) - len(strings.TrimLeftFunc(t.Value, unicode.IsSpace))
	return t.slice(left, max(left, len(strings.TrimRightFunc(t.Value, unicode.IsSpace))))
}

// IsZero reports whether t has no position, which means that the argument is absent.
func (t Text) IsZero() bool { return !t.Pos.IsValid() }

// Expr is an expression of expr-lang, not yet parsed.
type Expr struct{ Text }

// Template is text with expressions in braces, such as "sms:{phone}".
type Template struct {
	Text
	Parts []Part // in order; no two literals are neighbours
}

// Part is literal text, or an island: an expression in braces.
type Part struct {
	Literal string // unescaped: { for {{
	Island  Expr   // zero for literal text
}

// Amount is a number of permits: a constant or an expression.
type Amount struct {
	Pos  token.Pos // zero if the argument is absent
	Int  int64     // the constant, if Expr is zero
	Expr Expr
}

// Arg is one argument of a directive.
type Arg struct {
	Name  Text // zero for the function of a fallback
	Value Text // zero for a flag
}

// Directive is one //ratelimit: line.
type Directive struct {
	Pos  token.Pos // of the //
	Verb Text
	Args []Arg // in source order, without invalid ones
	Bad  bool  // the directive has an error, and arguments may be missing because of it
}

// IsZero reports whether d is absent.
func (d *Directive) IsZero() bool { return !d.Pos.IsValid() }

// Arg returns the argument called name.
func (d *Directive) Arg(name string) (Arg, bool) {
	for _, a := range d.Args {
		if a.Name.Value == name {
			return a, true
		}
	}
	return Arg{}, false
}

// Text returns the unquoted value of an argument, or "" if it is absent or a flag.
func (d *Directive) Text(name string) string {
	a, _ := d.Arg(name)
	return a.Value.Value
}

// Rule is a rule directive. Each argument is valid by itself; ratelimit.Rule.Validate checks whether they fit together.
type Rule struct {
	Directive

	// Arguments that may have expressions; zero if absent.
	Key      Template
	Distinct Template
	Message  Template
	Limit    Amount
	Cost     Amount
	When     Expr
	Settle   Expr
	Pause    Expr
	Anchor   Expr
	Hold     Text // the name of a result

	Values []Value // of the other arguments, in the order of the directive
}

// Value is the value of an argument without expressions.
type Value struct {
	*Argument
	Text     string        // the value as written, unquoted
	Count    int64         // of a CountKind, at least 1
	Duration time.Duration // of a DurationKind or RangeKind, more than zero
	Longest  time.Duration // of a RangeKind, the second duration; 0 if absent
}

// Group holds the directives of one comment group.
type Group struct {
	All   []Directive // in source order, including bad ones
	Rules []Rule

	// A group may have one of each. They are zero if absent.
	Wrap, Guard, Skip, Plain Directive
	Fallback                 Directive // its only argument is the function or method to call; a bad one has no argument
}

// Options returns the directive with the options of the type: guard if it stands there, else wrap, which is zero if absent.
func (g *Group) Options() Directive {
	if !g.Guard.IsZero() {
		return g.Guard
	}
	return g.Wrap
}
