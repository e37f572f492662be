package expr

import (
	"cmp"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// coalesce lowers a ?? b ?? c: the first value that is not nil. It uses last for the value after the last ??, and each for the
// others.
func (c *compiler) coalesce(n *ast.BinaryNode, each, last func(ast.Node) *term) *term {
	var all, terms []*term
	for _, left := range operands(n.Left) {
		all = append(all, each(left))
	}
	all = append(all, last(n.Right))
	if slices.Contains(all, nil) {
		return nil
	}
	for i, t := range all {
		if i == len(all)-1 || !isNil(t.typ) {
			terms = append(terms, t)
		}
		if t.sure { // the rest is not needed for this method, and may not be valid for it
			break
		}
	}
	if len(terms) == 1 {
		return terms[0]
	}
	for _, t := range terms[:len(terms)-1] {
		if len(t.gates) == 0 && !nilable(t.typ) {
			return c.errorf(n, "?? has no effect: %s is never nil", t.said(c.expr.Value))
		}
	}
	met := c.meet(start(n.Right), terms)
	if met[len(met)-1].optional() {
		return c.maybeNil(n, met[0].typ)
	}
	t := together(n, met)
	t.write = func(w *writer) operand {
		return w.choice(cmp.Or(met[0].hint(), t.hint()), t, func(name string) ([]string, string) {
			first := w.opened(met[0])
			if first.cond.text == "" {
				w.stmts = append(w.stmts, first.body...)
				return nil, first.value.text
			}
			return w.either(name, first, met[1:])
		})
	}
	return t
}

// operands returns the operands of a chain of ??.
func operands(n ast.Node) []ast.Node {
	if b, ok := n.(*ast.BinaryNode); ok && b.Operator == "??" {
		return append(operands(b.Left), b.Right)
	}
	return []ast.Node{n}
}

// choice writes a variable for t with a name like hint. The function decide returns the statements that assign to it, and its
// initial value, or "".
func (w *writer) choice(hint string, t *term, decide func(name string) (stmts []string, begin string)) operand {
	name := w.local(hint)
	stmts, begin := decide(name)
	if begin != "" {
		w.add(name + " := " + begin)
	} else {
		w.add("var " + name + " " + w.typ(t.typ))
	}
	w.stmts = append(w.stmts, stmts...)
	return variable(name)
}

// last returns the statements that assign t, the last alternative, to a variable. The values in facts are not nil there. If the
// variable can be initialized with t, last returns that value and no statements.
func (w *writer) last(name string, facts []string, t *term) (stmts []string, begin string) {
	stmts, o := w.block(facts, t)
	if len(stmts) == 0 && o.stable && o.text != "nil" {
		return nil, o.typed(w, t).text
	}
	return append(stmts, name+" = "+o.text), ""
}

// either returns the statements that assign v to a variable, or, if v is nil, the first of the others that is not nil.
func (w *writer) either(name string, v opened, others []*term) (stmts []string, begin string) {
	body := append(v.body, name+" = "+v.value.text)
	if v.cond.text == "" {
		return body, ""
	}
	var rest []string
	if len(others) == 1 {
		rest, begin = w.last(name, nil, others[0])
	} else {
		rest, begin = w.either(name, w.opened(others[0]), others[1:])
	}
	return append(v.gates, "if "+v.cond.text+" "+braced(body)+otherwise(rest)), begin
}

// opened is a value that may be nil.
type opened struct {
	gates []string // the statements before the condition
	cond  operand  // whether the value is not nil; without a text if it never is
	body  []string // the statements after the condition
	value operand
}

// opened writes t as a value that may be nil.
func (w *writer) opened(t *term) (v opened) {
	begin, known := len(w.stmts), len(w.known)
	at := begin
	w.nested++
	defer func() { w.nested-- }()
	for _, g := range t.orNil() {
		o := w.twice(g, w.term(g))
		w.written[g] = o
		if w.knows(o.text) {
			continue
		}
		cond := w.present(o, g.typ)
		if v.cond.text != "" {
			cond = join(token.LAND, v.cond, cond)
		}
		v.cond, at = cond, len(w.stmts)
		w.known = append(w.known, o.text)
	}
	v.value = w.term(t)
	v.body, w.known = w.cut(at), w.known[:known]
	v.gates = w.cut(begin)
	return v
}

// present returns the condition that a gate is not nil.
func (w *writer) present(o operand, t types.Type) operand {
	if isText(t) { // clientIP or userID
		return join(token.NEQ, o, fixed(`""`))
	}
	return w.againstNil(token.NEQ, o, t)
}

func otherwise(stmts []string) string {
	switch {
	case len(stmts) == 0:
		return ""
	case len(stmts) == 1 && strings.HasPrefix(stmts[0], "if "):
		return " else " + stmts[0]
	}
	return " else " + braced(stmts)
}
