package expr

import (
	"go/types"
	"strconv"

	"github.com/expr-lang/expr/ast"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// ownFunction is a function of expressions that calls one of package wrap.
type ownFunction struct {
	fn    string // the function of package wrap
	what  string // the identity of the caller that it returns, in words; "" if it returns something else
	usage string // how to call it
}

var ownFunctions = map[string]ownFunction{
	"clientIP":   {"ClientIP", "client IP", "clientIP(ctx)"},
	"userID":     {"UserID", "user ID", "userID(ctx)"},
	"retryAfter": {"RetryAfter", "", "retryAfter(err), or pass a response"},
}

// Spoken returns an expression in words: "client IP" for clientIP(ctx), and otherwise the expression itself.
func Spoken(expression string) string {
	for _, f := range ownFunctions {
		if f.usage == expression && f.what != "" {
			return f.what
		}
	}
	return expression
}

// own lowers a call of such a function.
func (c *compiler) own(n *ast.CallNode, name string, f ownFunction) *term {
	args, ok := c.terms(n.Arguments)
	switch {
	case !ok:
		return nil
	case f.what == "":
		return c.delay(n, name, args)
	}
	return c.identity(n, name, f, args)
}

// identity lowers clientIP(ctx) and userID(ctx).
func (c *compiler) identity(n *ast.CallNode, name string, id ownFunction, args []*term) *term {
	if len(args) != 1 || !implementsContext(args[0].typ) {
		return c.errorf(n, "%s takes only the context; write %s", name, id.usage)
	}
	own, _ := Context(c.env.Params)
	ctx := n.Arguments[0].String()
	isOwn := own >= 0 && c.lets[ctx] == nil && (c.env.index(ctx) == own || ctx == "ctx" && c.env.index(ctx) < 0)
	c.identities, c.ofOthers = append(c.identities, id.fn), c.ofOthers || !isOwn
	c.named(name, func(w *writer) operand {
		what := primary(strconv.Quote(id.what))
		if !c.ofOthers {
			if known, _ := w.names.Identity(id.fn, w.term(args[0]).text); known != "" {
				return w.callOf(w.std(machinePath, "Known"), what, primary(known))
			}
		}
		return w.callOf(w.std(machinePath, "Identity"), what, primary(w.std(wrapPath, id.fn)))
	})
	plain := &term{node: n, typ: text, write: func(w *writer) operand {
		ctx := w.term(args[0])
		if name, _ := w.names.Identity(id.fn, ctx.text); name != "" {
			return primary(name)
		}
		return w.callOf(w.std(wrapPath, id.fn), ctx)
	}}
	return &term{node: n, typ: text, unchecked: plain, identity: id.fn, write: func(w *writer) operand {
		o := w.term(plain)
		if _, given := w.names.Identity(id.fn, w.term(args[0]).text); given {
			return o
		}
		w.fails = true
		return w.callOf(w.std(wrapPath, "Carried"), o, primary(strconv.Quote(id.what)))
	}}
}

// carried returns t for a comparison, where clientIP and userID are "" if the context carries none.
func (t *term) carried() *term {
	if t.unchecked != nil {
		return t.unchecked
	}
	return t
}

// delay lowers retryAfter(x), which returns the delay that a far side asks for.
func (c *compiler) delay(n *ast.CallNode, name string, args []*term) *term {
	switch {
	case c.wanted != Duration:
		return c.errorf(n, "retryAfter goes in pause= only, which is computed after the call")
	case len(args) != 1:
		return c.errorf(n, "wrong number of arguments for retryAfter: %d; write the error or the response of the call", len(args))
	case !mayAskDelay(args[0].typ):
		return c.errorf(start(args[0].node), "retryAfter takes an error, an *http.Response or an http.Header; this is %s", c.a(args[0].typ))
	}
	c.named(name, func(w *writer) operand { return primary(w.std(wrapPath, "RetryAfter")) })
	if args[0].optional {
		return c.onMachine(n, duration)
	}
	return goCall(n, duration, wrapPath, "RetryAfter", args[0])
}

// mayAskDelay reports whether wrap.RetryAfter understands values of type t.
func mayAskDelay(t types.Type) bool {
	isResponse := pointee(t) != nil && reach.IsNamed(pointee(t), "net/http", "Response")
	return isNil(t) || isAny(t) || isResponse || reach.IsNamed(t, "net/http", "Header") || types.Implements(t, failure.Underlying().(*types.Interface))
}
