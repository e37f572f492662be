package expr

import (
	"go/types"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
)

// envName is expr's name for all that an expression is given: here the arguments of the call, by the names of the parameters.
const envName = "$env"

func isEnv(n ast.Node) bool {
	id, ok := n.(*ast.IdentifierNode)
	return ok && id.Value == envName
}

// ofEnv returns name if n is $env.name or $env["name"].
func ofEnv(n ast.Node) (name *ast.StringNode, ok bool) {
	if m, is := n.(*ast.MemberNode); is && isEnv(m.Node) {
		name, ok = m.Property.(*ast.StringNode)
	}
	return name, ok
}

// argument is $env.name: the parameter, also where something else is called so. Behind $env?. there need not be one, since
// the rule of a type stands for many methods.
func (c *compiler) argument(n *ast.MemberNode, name *ast.StringNode) *term {
	if i := c.env.param(name.Value); i >= 0 {
		return c.param(n, i)
	}
	if n.Optional {
		return c.absent(n)
	}
	var params []string
	for _, p := range c.env.Params {
		params = append(params, p.Name)
	}
	return c.errorf(name, "there is no parameter %s%s", name.Value, suggest(name.Value, params))
}

// ofAbsent is a part of a parameter that the method has not.
func (c *compiler) ofAbsent(n *ast.MemberNode) *term {
	if n.Optional {
		return c.absent(n)
	}
	return c.errorf(n.Property, "this method has no such parameter; expected ?. here")
}

// given reports that t is $env?.name of a parameter that the method has, and that is never nil.
func (c *compiler) given(t *term) bool {
	name, ok := ofEnv(t.node)
	if !ok || !t.node.(*ast.MemberNode).Optional {
		return false
	}
	i := c.env.param(name.Value)
	return i >= 0 && !nilable(c.env.Params[i].Type)
}

// knows reports that t is value by what parameters the method has. What that excludes is not looked at: it may be about a
// parameter that only other methods have.
func (c *compiler) knows(t *term, value bool) bool {
	if t == nil || !t.sure || t.con != value {
		return false
	}
	for _, l := range c.lets {
		l.used = true
	}
	c.machine = c.machine || len(c.lets) > 0 // which does not mind a variable without a use
	return true
}

// reserved refuses a literal that a parameter is called like: who writes it may mean either.
func (c *compiler) reserved(n ast.Node, word string) bool {
	if c.env.param(word) < 0 {
		return false
	}
	c.errorf(n, "%s is expr's own word; the parameter is %s.%s", word, envName, word)
	return true
}

// absent is a parameter that the method has not, or what would be a part of it.
func (c *compiler) absent(n ast.Node) *term {
	return &term{node: n, typ: types.Typ[types.UntypedNil], lit: true, gone: true, src: "nil", emit: func(*writer) operand { return word("nil") }}
}

// unequal is the value of a comparison, one side of which is gone.
func (c *compiler) unequal(n ast.Node, value bool, l, r *term) *term {
	for _, t := range []*term{l, r} {
		if !t.gone && t.con == nil && !isNil(t.typ) { // it may fail on the way
			return c.onMachine(n, truth)
		}
	}
	return literal(n, value)
}

// environment is $env as a whole, which expr's machine is given as a map.
func (c *compiler) environment(n ast.Node) *term {
	var args []*term
	for _, p := range c.env.Params {
		if !c.valid(n, p.Type) {
			return nil
		}
		args = append(args, &term{typ: p.Type})
	}
	c.nameEnv()
	return c.onMachine(n, types.NewMap(text, common(args)))
}

func (c *compiler) nameEnv() {
	c.named(envName, func(w *writer) operand {
		var pairs []string
		for i, p := range c.env.Params {
			pairs = append(pairs, strconv.Quote(p.Name)+": "+w.names.Param(i))
		}
		return operand{text: "map[string]any{" + strings.Join(pairs, ", ") + "}", prec: highest}
	})
}

// inEnv lowers x in $env, which is known where x is.
func (c *compiler) inEnv(n *ast.BinaryNode, x *term) *term {
	if x == nil {
		return nil
	}
	if name, ok := x.con.(string); ok {
		c.nameEnv()
		t := literal(n, c.env.param(name) >= 0)
		t.sure = true
		return t
	}
	if !isText(x.typ) && !isAny(x.typ) {
		return c.errorf(start(n.Left), "a parameter's name is a text; this is %s", c.a(x.typ))
	}
	c.nameEnv()
	return c.onMachine(n, truth)
}
