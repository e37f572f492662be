package expr

import (
	"go/types"

	"github.com/expr-lang/expr/ast"

	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// retryAfter is the function of expressions that returns the delay that a far side asks for. It calls RetryAfter of package wrap.
const retryAfter = "retryAfter"

// retryAfter lowers retryAfter(x).
func (c *compiler) retryAfter(n *ast.CallNode) *term {
	args, ok := c.terms(n.Arguments)
	switch {
	case !ok:
		return nil
	case c.wanted != Duration:
		return c.errorf(n, "retryAfter goes in pause= only, which is computed after the call")
	case len(args) != 1:
		return c.errorf(n, "wrong number of arguments for retryAfter: %d; write the error or the response of the call", len(args))
	case !mayAskDelay(args[0].typ):
		return c.errorf(start(args[0].node), "retryAfter takes an error, an *http.Response or an http.Header; this is %s", c.a(args[0].typ))
	}
	c.named(retryAfter, func(w *writer) operand { return primary(w.std(wrapPath, "RetryAfter")) })
	if args[0].optional() {
		return c.onMachine(n, duration)
	}
	return goCall(n, duration, wrapPath, "RetryAfter", args[0])
}

// mayAskDelay reports whether wrap.RetryAfter understands values of type t.
func mayAskDelay(t types.Type) bool {
	isResponse := pointee(t) != nil && reach.IsNamed(pointee(t), "net/http", "Response")
	return isNil(t) || isAny(t) || isResponse || reach.IsNamed(t, "net/http", "Header") || types.Implements(t, failure.Underlying().(*types.Interface))
}
