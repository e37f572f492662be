package expr

import (
	"go/types"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// argument is $env.name: the parameter or the receiver, even where something else has the same name. With $env?.name the method
// need not have one, since the rule of a type covers many methods.
func (c *compiler) argument(n *ast.MemberNode, name *ast.StringNode) *term {
	if c.env.holds(name.Value) {
		t := c.ofMethod(n, c.env.find(name.Value))
		if t != nil {
			t.sure = n.Optional && !nilable(t.typ)
		}
		return t
	}
	if n.Optional {
		return c.absent(n)
	}
	return c.errorf(name, "there is no parameter %s%s", name.Value, c.hint(name.Value))
}

// ofAbsent is a part of a parameter that the method does not have.
func (c *compiler) ofAbsent(n *ast.MemberNode) *term {
	if n.Optional {
		return c.absent(n)
	}
	return c.errorf(n.Property, "this method has no such parameter; expected ?. here")
}

// knows reports that the parameters of the method make t this value. The code that is then never reached is not checked: it may
// be about a parameter that only other methods have.
func knows(t *term, value bool) bool {
	return t != nil && t.sure && t.con == value
}

// word is nil, true or false, unless that is also the name of a parameter or of the receiver: it could mean either.
func (c *compiler) word(n ast.Node, v any) *term {
	if name := n.String(); c.env.holds(name) {
		return c.errorf(n, "%s is expr's own word; %s", name, c.env.spelling(name))
	}
	return literal(n, v)
}

// spelling says how to write a parameter or the receiver whose name is a word of expr's.
func (e *Env) spelling(name string) string {
	role := "parameter"
	if e.find(name) == len(e.Params) {
		role = "receiver"
	}
	return "the " + role + " " + name + " is " + envName + "." + name
}

// absent is a parameter that the method does not have, or a part of one.
func (c *compiler) absent(n ast.Node) *term {
	t := literal(n, nil)
	t.gone = true
	return t
}

// unequal is an operator beside a parameter that the method does not have, which equals nothing but nil.
func (c *compiler) unequal(n *ast.BinaryNode, l, r *term) *term {
	both, value := isNil(l.typ) && isNil(r.typ), false
	switch n.Operator {
	case "==":
		value = both
	case "!=":
		value = !both
	case "in", "contains", "startsWith", "endsWith":
	default:
		return c.mixed(n, l, r)
	}
	for _, t := range []*term{l, r} {
		if !t.gone && t.con == nil && !isNil(t.typ) { // it may fail on the way
			return c.onMachine(n, truth)
		}
	}
	return literal(n, value)
}

// environment is $env as a whole: a map, for expr's machine.
func (c *compiler) environment(n ast.Node) *term {
	c.nameEnv()
	return c.onMachine(n, types.NewMap(text, anything))
}

func (c *compiler) nameEnv() {
	c.varies = true
	c.named(envName, func(w *writer) operand {
		var pairs []string
		for i, p := range c.env.variables() {
			if c.env.holds(p.Name) {
				pairs = append(pairs, strconv.Quote(p.Name)+": "+w.names.Variable(i))
			}
		}
		return operand{text: "map[" + w.word("string") + "]" + w.word("any") + "{" + strings.Join(pairs, ", ") + "}", prec: highest}
	})
}

// inEnv lowers x in $env. The value is known where x is a constant.
func (c *compiler) inEnv(n *ast.BinaryNode, x *term) *term {
	if x == nil {
		return nil
	}
	if name, ok := x.con.(string); ok {
		c.nameEnv()
		t := literal(n, c.env.holds(name))
		t.sure = true
		return t
	}
	if !isText(x.typ) && !isAny(x.typ) {
		return c.errorf(start(n.Left), "a parameter's name is a text; this is %s", c.a(x.typ))
	}
	c.nameEnv()
	return c.onMachine(n, truth)
}
