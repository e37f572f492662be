package annotations

import (
	"go/token"
	"strings"
	"time"
	"unicode"
)

// Text is a value as the source spells it, unquoted, with the position of each of its bytes.
type Text struct {
	Value string
	Pos   token.Pos // of the first byte of the value; after the opening quote of a quoted one

	// source[i], for i up to len(Value), is the distance in bytes from Pos to what spells Value[i]; nil where it is i.
	source []int
}

// At returns the position of Value[i]. At(len(Value)) is the position just behind the value.
func (t Text) At(i int) token.Pos {
	if t.source == nil {
		return t.Pos + token.Pos(i)
	}
	return t.Pos + token.Pos(t.source[i])
}

// slice returns the text of Value[i:j].
func (t Text) slice(i, j int) Text {
	s := Text{Value: t.Value[i:j], Pos: t.At(i)}
	if t.source != nil {
		s.source = make([]int, j-i+1)
		for k := range s.source {
			s.source[k] = t.source[i+k] - t.source[i]
		}
	}
	return s
}

// trim returns t without the spaces around it.
func (t Text) trim() Text {
	left := len(t.Value) - len(strings.TrimLeftFunc(t.Value, unicode.IsSpace))
	return t.slice(left, max(left, len(strings.TrimRightFunc(t.Value, unicode.IsSpace))))
}

// IsZero reports whether t stands nowhere: the argument is absent.
func (t Text) IsZero() bool { return !t.Pos.IsValid() }

// Expr is an expression of expr-lang, not yet parsed.
type Expr struct{ Text }

// Template is text with islands of expressions, such as "sms:{phone}".
type Template struct {
	Text
	Parts []Part // in order; no two literals are neighbours
}

// Part is a literal or an island: Island is zero for a literal.
type Part struct {
	Literal string // unescaped: {{ stands here as {
	Island  Expr
}

// Amount is a number of permits: a constant or an expression.
type Amount struct {
	Pos  token.Pos // zero if the argument is absent
	Int  int64     // the constant, if Expr is zero
	Expr Expr
}

// Arg is where one argument of a directive stands.
type Arg struct {
	Name  Text // zero for the function of a fallback
	Value Text // zero for a flag
}

// Directive is one //ratelimit: line.
type Directive struct {
	Pos  token.Pos // of the //
	Verb Text
	Args []Arg // in order; without those that are errors

	// Bad reports that something in the directive is an error: values may be missing for that reason alone.
	Bad bool
}

// IsZero reports whether d stands nowhere.
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

// Text returns the value of an argument as the source spells it, or "" if it is absent or a flag.
func (d *Directive) Text(name string) string {
	a, _ := d.Arg(name)
	return a.Value.Value
}

// Rule is the meaning of a rule directive. What its arguments mean together is not checked here: that is for
// ratelimit.Rule.Validate to say.
type Rule struct {
	Directive

	// Arguments with expressions; zero where absent.
	Key      Template
	Distinct Template
	Message  Template
	Limit    Amount
	Cost     Amount
	When     Expr
	Settle   Expr

	Values []Value // of the other arguments, in the order of the directive
}

// Value is the value of an argument that is known when generating.
type Value struct {
	*Argument
	Text     string        // of words and texts
	Count    int64         // of a CountKind, at least 1
	Duration time.Duration // of a DurationKind, more than zero
}

// Group is what the directives of one comment group say.
type Group struct {
	All   []Directive // in source order, also those that are bad
	Rules []Rule

	// At most one of each may stand in a group; zero where there is none.
	Wrap, Skip Directive
	Fallback   Directive // its only argument is the function or method to call instead; none if it is bad
}
