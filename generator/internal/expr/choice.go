package expr

import (
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// alternative is one of the values of a choice: it applies if a condition is true, or if parts of it are not nil. The last one always
// applies.
type alternative struct {
	condition *term
	present   []*term
	value     *term
}

// conditional lowers c ? a : b and if c { a } else { b }. It uses each to lower the values.
func (c *compiler) conditional(n *ast.ConditionalNode, each func(ast.Node) *term) *term {
	cond, x, y := c.condition(n.Cond, "the condition"), each(n.Exp1), each(n.Exp2)
	switch {
	case cond == nil || x == nil || y == nil:
		return nil
	case cond.lit && cond.con == true:
		return x
	case cond.lit && cond.con == false:
		return y
	}
	return c.choice(n, start(n.Exp2), alternative{condition: cond, value: x}, alternative{value: y})
}

// coalesce lowers a ?? b ?? c: the first value that is not nil. It uses convert for each value but the last one, and final to lower that.
func (c *compiler) coalesce(n *ast.BinaryNode, convert func(*term) *term, final func(ast.Node) *term) *term {
	var all []alternative
	for _, left := range operands(n.Left) {
		t := c.valueOf(left)
		switch {
		case t == nil:
			return nil
		case isNil(t.typ):
			continue
		case len(t.parts()) == 0:
			return c.errorf(n, "?? has no effect: %s is never nil", t.said())
		}
		present := t.parts()
		if t.orEmpty != nil {
			t = t.orEmpty
		}
		if t = convert(t); t == nil {
			return nil
		}
		all = append(all, alternative{present: present, value: t.plainly()})
	}
	last := final(n.Right)
	if len(all) == 0 || last == nil {
		return last
	}
	return c.choice(n, start(n.Right), append(all, alternative{value: last})...)
}

// operands returns the operands of a chain of ??.
func operands(n ast.Node) []ast.Node {
	if b, ok := n.(*ast.BinaryNode); ok && b.Operator == "??" {
		return append(operands(b.Left), b.Right)
	}
	return []ast.Node{n}
}

// choice lowers the first value whose alternative applies. An error that the values have no common type stands at last.
//
//	if doc != nil && doc.Meta != nil {
//		return doc.Meta.Title
//	}
//	return "-"
func (c *compiler) choice(n, last ast.Node, all ...alternative) *term {
	var values []*term
	for _, a := range all {
		value := c.nullable(a.value)
		if value == nil {
			return nil
		}
		values = append(values, value)
	}
	met := c.meet(last, values)
	if met == nil || !c.canName(n, met[0].typ) {
		return nil
	}
	return &term{node: n, typ: met[0].typ, choose: func(w *writer) (stmts string) {
		for i, a := range all {
			returned := func() string { return w.returned(met[i]) }
			switch {
			case a.condition != nil:
				stmts += "if " + w.term(a.condition).text + " " + braced(returned()) + "\n"
			case a.present != nil:
				stmts += w.ifPresent(a.present, returned)
			default:
				stmts += returned()
			}
		}
		return stmts
	}}
}

// parts returns the terms that are not nil if t is not nil: doc, doc.Meta and doc.Meta.Next for doc?.Meta?.Next. Each but the first is a
// part of the one before. An identity counts as nil if it is empty.
func (t *term) parts() []*term {
	switch {
	case t.orEmpty != nil:
		return append(slices.Clip(t.links), t.orEmpty)
	case nilable(t.typ):
		return append(slices.Clip(t.links), t)
	}
	return t.links
}

// ifPresent writes statements that run if no part is nil. A part that is more than a path gets a variable, so that its functions are called
// once:
//
//	if value := find(id); value != nil && value.Meta != nil {
func (w *writer) ifPresent(parts []*term, then func() string) string {
	condition := ""
	for i, t := range parts {
		if o := w.term(t); !path.MatchString(o.text) {
			if i > 0 {
				return "if " + condition + " " + braced(strings.TrimSuffix(w.ifPresent(parts[i:], then), "\n")) + "\n"
			}
			w.held[t] = w.names.Local("value")
			defer delete(w.held, t)
			condition = w.held[t] + " := " + o.text + "; "
		}
		present := w.againstNil(token.NEQ, t).text
		if i > 0 {
			present = operation(condition, "&&", present)
			condition = ""
		}
		condition += present
		w.sure[t] = true
		defer delete(w.sure, t)
	}
	return "if " + condition + " " + braced(then()) + "\n"
}

// guarded returns t, a condition, for the case that no part is nil. Otherwise its value is absent:
//
//	doc != nil && doc.Owner == phone
func (c *compiler) guarded(n ast.Node, t *term, absent bool, parts ...*term) *term {
	switch {
	case len(parts) == 0:
		return t
	case t.con == absent:
		return t
	case t.con == !absent: // all depends on the parts
		last := len(parts) - 1
		return c.guarded(n, isAbsent(n, token.NEQ, parts[last]), absent, parts[:last]...)
	}
	if slices.ContainsFunc(parts, func(t *term) bool { return !isPath(t.node) }) {
		return &term{node: n, typ: truth, choose: func(w *writer) string {
			return w.ifPresent(parts, func() string { return w.returned(t) }) + "return " + w.word(spelled(absent))
		}}
	}
	op, against := token.LAND, token.NEQ
	if absent {
		op, against = token.LOR, token.EQL
	}
	return &term{node: n, typ: truth, write: func(w *writer) operand {
		all := w.againstNil(against, parts[0])
		for _, part := range parts[1:] {
			w.sure[part] = true
			defer delete(w.sure, part)
			all = join(op, all, w.againstNil(against, part))
		}
		w.sure[parts[0]] = true
		defer delete(w.sure, parts[0])
		return join(op, all, w.term(t))
	}}
}

// path matches a variable, or a field of one.
var path = regexp.MustCompile(`^[\pL_][\pL_\pN.]*$`)

// isPath reports whether n is a variable, or a field of one, so that it may be computed twice.
func isPath(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IdentifierNode, *ast.PointerNode:
		return true
	case *ast.MemberNode:
		_, isField := n.Property.(*ast.StringNode)
		return isField && isPath(n.Node)
	case *ast.ChainNode:
		return isPath(n.Node)
	}
	return false
}

// once returns a variable with the value of t, and a function that returns a term in which this variable is declared. It returns t
// itself if t may be computed twice.
//
//	value := find(phone)
func once(t *term) (v *term, in func(*term) *term) {
	if t.con != nil || isNil(t.typ) || isPath(t.node) {
		return t, func(body *term) *term { return body }
	}
	var name string
	v = &term{node: t.node, typ: t.typ, write: func(*writer) operand { return variable(name) }}
	return v, func(body *term) *term {
		return &term{node: body.node, typ: body.typ, choose: func(w *writer) string {
			assigned := w.typed(t).text
			name = w.names.Local("value")
			return name + " := " + assigned + "\n" + w.returned(body)
		}}
	}
}

// isAbsent lowers a comparison of a part with nil.
func isAbsent(n ast.Node, sign token.Token, part *term) *term {
	return &term{node: n, typ: truth, write: func(w *writer) operand { return w.againstNil(sign, part) }}
}

// againstNil writes a comparison with nil, or of an identity with the empty text. A nil pointer in an interface or in a type parameter counts
// as nil.
func (w *writer) againstNil(op token.Token, t *term) operand {
	switch {
	case isText(t.typ):
		return join(op, w.term(t), primary(`""`))
	case !types.IsInterface(t.typ):
		return join(op, w.term(t), primary(w.word("nil")))
	}
	r := w.callOf(w.std(wrapPath, "IsNil"), w.term(t))
	if op == token.NEQ {
		return operand{text: "!" + r.text, prec: unary}
	}
	return r
}

// plainly returns t as a value that must not be nil.
func (t *term) plainly() *term {
	if t.links == nil {
		return t
	}
	return t.then(t.typ, func(_ *writer, o operand) operand { return o }).present()
}

// present returns t without the parts that may be nil.
func (t *term) present() *term {
	v := *t
	v.links, v.orEmpty = nil, nil
	return &v
}

// nullable returns t as a Go value that is nil where a part of t is nil. It is a pointer if the type of t has no nil:
//
//	func() *string {
//		if doc != nil {
//			return &doc.Owner
//		}
//		return nil
//	}()
func (c *compiler) nullable(t *term) *term {
	switch {
	case t == nil || t.links == nil:
		return t
	case nilable(t.typ):
		return c.orNil(t.plainly(), t.typ, t.links)
	case t.pointer != nil:
		return c.nullable(t.pointer)
	}
	return c.orNil(boxed(t.plainly()), types.NewPointer(t.typ), t.links)
}

// orNil returns t in a type that has a nil, which is the value if a part is nil.
func (c *compiler) orNil(t *term, typ types.Type, parts []*term) *term {
	if !c.canName(t.node, typ) {
		return nil
	}
	return &term{node: t.node, typ: typ, choose: func(w *writer) string {
		return w.ifPresent(parts, func() string { return w.returned(t) }) + "return " + w.word("nil")
	}}
}

// boxed returns a pointer to the value of t:
//
//	&doc.Owner
func boxed(t *term) *term {
	return &term{node: t.node, typ: types.NewPointer(t.typ), write: func(w *writer) operand {
		o := w.typed(t)
		if pointer, isTarget := strings.CutPrefix(o.text, "*"); isTarget && o.addr {
			return operand{text: pointer, prec: unary}
		}
		if !o.addr {
			return w.callOf(w.std(wrapPath, "Copy"), o)
		}
		return operand{text: "&" + o.in(highest), prec: unary}
	}}
}

// canName reports whether code can name a type. It reports an error at n if it cannot.
func (c *compiler) canName(n ast.Node, t types.Type) bool {
	if isNil(t) || c.env.CanName(t) {
		return true
	}
	c.errorf(n, "code here cannot name the type %s; %s", c.typeName(t), c.inFunction(n))
	return false
}

func (c *compiler) not(n ast.Node, t *term) *term {
	if v, ok := t.con.(bool); ok && t.lit {
		return literal(n, !v)
	}
	return inverse(n, t)
}

// inverse writes an exclamation mark before t:
//
//	!slices.Contains(roles, "admin")
func inverse(n ast.Node, t *term) *term {
	return &term{node: n, typ: truth, write: func(w *writer) operand {
		return operand{text: "!" + w.term(t).in(unary), prec: unary}
	}}
}

// logic lowers && and ||.
func (c *compiler) logic(n *ast.BinaryNode, op token.Token) *term {
	l, r := c.condition(n.Left, n.Operator), c.condition(n.Right, n.Operator)
	if l == nil || r == nil {
		return nil
	}
	if l.lit && r.lit {
		x, y := l.con.(bool), r.con.(bool)
		return literal(n, op == token.LAND && x && y || op == token.LOR && (x || y))
	}
	return infix(n, truth, op, l, r)
}

// condition lowers an operand that must be a bool.
func (c *compiler) condition(n ast.Node, role string) *term {
	t := c.valueOf(n)
	switch {
	case t == nil:
		return nil
	case isAny(t.typ):
		return c.dynamic(t, nil)
	case !isBool(t.typ):
		return c.errorf(start(n), "%s needs a bool; this is %s", role, c.a(t.typ))
	}
	return t.as(types.Bool)
}
