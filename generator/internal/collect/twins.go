package collect

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/parser"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/calendar"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// twins reports rules of one method that count for one subject in one window, and marks them as bad. Of two that count the same
// calls one never decides; and two that share a count, though each means its own, take from each other. Told is the later one, or
// that of the method if the other one is the type's.
func (c *collector) twins(rules []*model.Rule) {
	for i := range rules {
		for j := range i {
			first, second := j, i
			if rules[i].OfType && !rules[j].OfType {
				first, second = i, j
			}
			a, b := rules[first], rules[second]
			if a.Bad || b.Bad || !isTwin(a, b) {
				continue
			}
			line := annotations.Line(c.fset, a.Pos, b.Pos)
			switch {
			case counted(a) == counted(b):
				c.errorf(b.Verb.Pos, "this rule counts the same calls in the same window (%s) as the one of %s; keep the stricter one, or give one a name",
					b.Limit.Window(), line)
			case sharesCount(a, b):
				c.errorf(b.Verb.Pos, "this rule shares one count with the one of %s, as both are called %s, so that each counts what the other takes, too; give one of them a name of its own%s",
					line, b.Limit.Name, inOneRule(a, b))
			default:
				continue
			}
			bad := *b // which may be good for other methods of the type
			bad.Bad = true
			rules[second] = &bad
		}
	}
}

// isTwin reports whether two rules of a method have one name, one key, and windows that begin and end together.
func isTwin(a, b *model.Rule) bool {
	x, y := a.Limit, b.Limit
	return x.Name == y.Name && spelling(a.Key) == spelling(b.Key) && x.Scope == y.Scope &&
		(x.Window() == y.Window() || x.Distinct == y.Distinct && calendar.Same(x, y))
}

// sharesCount reports whether twins are one to the stores, which know windows, and the keys of rules without a name, by their texts.
func sharesCount(a, b *model.Rule) bool {
	return a.Limit.Window() == b.Limit.Window() && (a.Rule.Text("name") != "" || a.Limit.Key == b.Limit.Key)
}

// counted writes what a rule counts, and to which end.
func counted(r *model.Rule) string {
	return fmt.Sprint(spelled(r.Rule.When), amount(r.Rule.Cost), spelling(r.Rule.Distinct), r.Limit.Mode)
}

// inOneRule says how twins that differ in nothing but the calls to which they apply are written as one rule; or nothing.
func inOneRule(a, b *model.Rule) string {
	if b.Rule.When.IsZero() {
		a, b = b, a
	}
	when, unless := b.Rule.When, a.Rule.When
	same := *a
	same.Rule.When = when
	if when.IsZero() || counted(&same) != counted(b) || !unless.IsZero() && !negates(unless, when) {
		return ""
	}
	limit := fmt.Sprintf("%s ? %s : %s", when.Value, amount(b.Rule.Limit), amount(a.Rule.Limit))
	tree, err := parser.Parse(limit)
	if err != nil {
		return ""
	}
	if choice, ok := tree.Node.(*ast.ConditionalNode); !ok || choice.Cond.String() != spelled(when) {
		return ""
	}
	return ", or write one rule with limit=" + strconv.Quote(limit)
}

var opposite = map[string]string{"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}

// negates reports whether one of two conditions is written as the opposite of the other.
func negates(x, y annotations.Expr) bool {
	a, err := parser.Parse(x.Value)
	b, errToo := parser.Parse(y.Value)
	return err == nil && errToo == nil && (isNot(a.Node, b.Node) || isNot(b.Node, a.Node))
}

func isNot(a, b ast.Node) bool {
	switch a := a.(type) {
	case *ast.UnaryNode:
		return (a.Operator == "!" || a.Operator == "not") && a.Node.String() == b.String()
	case *ast.BinaryNode:
		b, ok := b.(*ast.BinaryNode)
		return ok && opposite[a.Operator] == b.Operator && a.Left.String() == b.Left.String() && a.Right.String() == b.Right.String()
	}
	return false
}

// spelling writes a template such that equal expressions look alike.
func spelling(t annotations.Template) string {
	var b strings.Builder
	for _, p := range t.Parts {
		b.WriteString(strconv.Quote(p.Literal) + spelled(p.Island))
	}
	return b.String()
}

// spelled does the same for an expression.
func spelled(e annotations.Expr) string {
	if e.IsZero() {
		return ""
	}
	if tree, err := parser.Parse(e.Value); err == nil {
		return tree.Node.String()
	}
	return e.Value
}

// amount writes an amount in the same way; an absent cost is 1.
func amount(a annotations.Amount) string {
	switch {
	case !a.Pos.IsValid():
		return "1"
	case a.Expr.IsZero():
		return strconv.FormatInt(a.Int, 10)
	}
	return spelled(a.Expr)
}
