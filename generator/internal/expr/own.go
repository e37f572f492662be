package expr

import (
	"go/types"

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
func (c *compiler) own(n *ast.CallNode, f ownFunction) *term {
	args, ok := c.terms(n.Arguments)
	switch {
	case !ok:
		return nil
	case f.what == "":
		return c.delay(n, args)
	case len(args) != 1 || !implementsContext(args[0].typ):
		return c.errorf(n, "%s takes only the context; write %s", source(n.Callee), f.usage)
	}
	call := goCall(n, text, wrapPath, f.fn, args[0])
	t := must(call)
	t.orEmpty = goCall(n, text, wrapPath, "OrEmpty", call)
	return t
}

// carried returns t for a comparison, where clientIP and userID are "" if the context carries none.
func (t *term) carried() *term {
	if t.orEmpty != nil {
		return t.orEmpty
	}
	return t
}

// delay lowers retryAfter(x), which returns the delay that a far side asks for.
func (c *compiler) delay(n *ast.CallNode, args []*term) *term {
	switch {
	case c.wanted != Duration:
		return c.errorf(n, "retryAfter goes in pause= only, which is computed after the call")
	case len(args) != 1:
		return c.errorf(n, "wrong number of arguments for retryAfter: %d; write the error or the response of the call", len(args))
	case !mayAskDelay(args[0].typ):
		return c.errorf(start(args[0].node), "retryAfter takes an error, an *http.Response or an http.Header; this is %s", c.a(args[0].typ))
	}
	asked := c.nullable(args[0])
	if asked == nil {
		return nil
	}
	return goCall(n, c.ofTime("Duration", duration), wrapPath, "RetryAfter", asked)
}

// mayAskDelay reports whether wrap.RetryAfter understands values of type t.
func mayAskDelay(t types.Type) bool {
	isResponse := pointee(t) != nil && reach.IsNamed(pointee(t), "net/http", "Response")
	return isNil(t) || isAny(t) || isResponse || reach.IsNamed(t, "net/http", "Header") || isError(t)
}
