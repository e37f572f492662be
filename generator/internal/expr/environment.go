package expr

import (
	"go/types"
	"strconv"

	"github.com/expr-lang/expr/ast"
)

// argument lowers $env.name: the parameter, the receiver or the result, even if something else has the same name. $env?.name is nil for a method
// without this parameter, as the rule of a type is compiled for many methods.
func (c *compiler) argument(n *ast.MemberNode, name *ast.StringNode) *term {
	if c.env.holds(name.Value) {
		t := c.ofMethod(n, c.env.index(name.Value))
		t.decided = n.Optional && !nilable(t.typ)
		return t
	}
	if n.Optional {
		return c.absent(n)
	}
	return c.errorf(name, "there is no parameter %s%s", name.Value, c.hint(name.Value))
}

// ofAbsent lowers a member of a parameter that the method does not have.
func (c *compiler) ofAbsent(n *ast.MemberNode) *term {
	if n.Optional {
		return c.absent(n)
	}
	return c.errorf(n.Property, "this method has no such parameter; expected ?. here")
}

// knows reports whether t has this value because of the parameters that the method has or lacks. The part of the expression that is
// then unreachable is not checked, as it may use a parameter that only other methods have.
func knows(t *term, value bool) bool {
	return t != nil && t.decided && t.con == value
}

// word lowers nil, true or false. It is an error if the word is also the name of a parameter or of the receiver.
func (c *compiler) word(n ast.Node, v any) *term {
	if name := n.String(); c.env.holds(name) {
		return c.errorf(n, "%s is expr's own word; %s", name, spelling(name))
	}
	return literal(n, v)
}

// spelling returns advice on how to write a variable of the method whose name is a keyword of expr.
func spelling(name string) string { return "your " + name + " is " + envName + "." + name }

// absent returns the term for a parameter that the method does not have, or for a member of it: nil.
func (c *compiler) absent(n ast.Node) *term {
	t := literal(n, nil)
	t.absent = true
	return t
}

// unequal lowers an operator with an operand that the method does not have. This operand equals nil only. The other one is computed, as
// it may fail.
func (c *compiler) unequal(n *ast.BinaryNode, l, r *term) *term {
	takes := func(*term) bool { return true }
	switch n.Operator {
	case "==", "!=", "in":
	case "contains", "startsWith", "endsWith":
		takes = func(t *term) bool { return t.absent || mayBe(isText, t.value().typ) }
	default:
		return c.mixed(n, l, r)
	}
	if !takes(l) || !takes(r) {
		return c.mixed(n, l, r)
	}
	if t, done := c.fold(n, n.Operator, l, r); done {
		return t
	}
	return c.onMachine(n, truth)
}

// namedValues is the type of $env.
var namedValues = types.NewMap(text, anything)

// environment lowers $env alone, which is a map for the machine.
func (c *compiler) environment(n ast.Node) *term {
	c.nameEnv()
	return c.onMachine(n, namedValues)
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
		return w.composite(namedValues, pairs)
	})
}

// inEnv lowers x in $env. If x is a constant, so is the result.
func (c *compiler) inEnv(n *ast.BinaryNode, x *term) *term {
	if x == nil {
		return nil
	}
	if name, ok := x.con.(string); ok {
		c.nameEnv()
		t := literal(n, c.env.holds(name))
		t.decided = true
		return t
	}
	if !isText(x.typ) && !isAny(x.typ) {
		return c.errorf(start(n.Left), "the name of a parameter is a string; this is %s", c.a(x.typ))
	}
	c.nameEnv()
	return c.onMachine(n, truth)
}
