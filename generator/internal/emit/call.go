package emit

import (
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// caller writes a method of a wrapper, which makes the wrapped call.
type caller struct {
	*writer
	target  string         // the function to call: the wrapped value, or a method or field of it
	generic string         // the type arguments of the wrapper, as in [K, V]
	passed  map[int]string // the Go expressions that stand for parameters in calls, by the indices of these
}

// newCaller returns a caller for m. The wrapped value is next, and names in outer are in the scope around the method.
func (w *wrapper) newCaller(m *model.Method, next, limits, target string, outer ...string) *caller {
	c := &caller{writer: w.function(m, outer...).newWriter(), target: target, generic: w.args, passed: map[int]string{}}
	c.limits, c.receiver, c.leave = limits, next, c.failed
	return c
}

// statements returns the statements of the method. Those of a method without rules are:
//
//	return s.next.Close()
func (c *caller) statements() *jen.Statement {
	c.before = c.passArguments()
	switch c.checkContext(); {
	case len(c.method.Rules) == 0:
		c.add(c.forward())
	case c.method.LooksBack():
		c.beginAndCall()
	default:
		asked := c.take()
		c.add("if "+c.err+" := "+asked+"; "+c.err+" != nil {\n"+c.refusal(c.err)+"\n}", c.forward())
	}
	return c.body()
}

// beginAndCall asks the limiter and makes the wrapped call. If the call fails, rules with refund=error give their permits back. The other rules
// with settle= settle their cost in any case, and those with pause= pause their keys. Rules that count calls that run give their permits
// back when the method returns. For example:
//
//	taken, err := wrap.Begin(ctx, a.limits, askRules, wrap.Charge{Key: user, Cost: 500})
//	if err != nil {
//		return nil, err
//	}
//	ok := false
//	defer taken.RefundUnless(ctx, &ok)
//	answer, err := a.next.Ask(ctx, user)
//	ok = err == nil
//	return answer, err
func (c *caller) beginAndCall() {
	m, err := c.method, c.err
	if m.Error >= 0 && !names.IsBlank(c.results[m.Error]) {
		err = c.results[m.Error]
	}
	taken := c.begin(err, c.refusal)
	if m.Releases() {
		c.add(c.release(taken)...)
	}
	ok := ""
	switch {
	case m.Refunds():
		ok = c.Take("ok")
		c.add(ok+" := false", "defer "+taken+".RefundUnless("+c.context()+", &"+ok+")")
	case !m.Settles() && !m.Pauses() && m.Hold == nil:
		c.add(c.forward())
		return
	}
	c.callAndSettle(err, taken, ok)
}

// callAndSettle makes the wrapped call, notes in the variable ok, if there is one, whether the call has succeeded, lets a result hold
// permits, pauses, settles the charge, and returns the results:
//
//	answer, err := a.next.Ask(ctx, user)
//	ok = err == nil
//	return answer, err
func (c *caller) callAndSettle(err, taken, ok string) {
	variables, assign := c.resultVariables(err)
	made, leave := c.target, "return"
	if len(variables) > 0 {
		made, leave = listed(variables, " "+assign+" "+c.target), "return "+listed(c.limitedResults(variables), "")
	}
	c.add(hugging(made, c.arguments(c.method.Signature.Variadic())...))
	if ok != "" {
		c.add(ok + " = " + c.succeeded(variables))
	}
	c.keep(variables, func(result string) string { return result })
	c.pauseAndSettle(variables, taken)
	if len(variables) > 0 {
		c.add(leave)
	}
}

// forward makes the wrapped call and returns its results:
//
//	return s.next.Send(ctx, phone)
func (c *caller) forward() string {
	return c.handOut(c.target, c.arguments(c.method.Signature.Variadic()))
}

// arguments returns all parameters as arguments:
//
//	ctx, in, opts...
func (c *caller) arguments(spread bool) []string {
	args := slices.Clone(c.params)
	for i, value := range c.passed {
		args[i] = value
	}
	if spread {
		args[len(args)-1] += "..."
	}
	return args
}

// refusal returns the statements that handle the limiter's error, which is in the variable err. They return the error, or, if the
// call is refused, call the fallback unless it is nil. A method without an error result calls its fallback for every error:
//
//	if errors.Is(err, ratelimit.ErrTooManyRequests) {
//		return sendLater(ctx, phone)
//	}
//	return err
func (c *caller) refusal(err string) string {
	fallback := c.method.Fallback
	if fallback == nil {
		return c.described(err, c.failure)
	}
	instead := c.instead(err)
	if fallback.TakesErr {
		instead = c.described(err, c.instead)
	}
	if c.method.Error < 0 {
		return instead
	}
	is := c.Import(errorsPackage) + ".Is(" + err + ", " + c.Import(runtimePackage) + ".ErrTooManyRequests" + ")"
	failure := c.failure(err)
	if fallback.MayBeNil {
		is += " && " + c.fallback(fallback) + " != nil"
		failure = c.described(err, c.failure)
	}
	return "if " + is + " {\n" + instead + "\n}\n" + failure
}

// failed returns the statements that leave the method with the error of an expression. A fallback that does not take the error is called in its
// place:
//
//	return nil, wrap.Failed(ctx, s.limits, err)
func (c *caller) failed(failed string) string {
	if c.method.Error < 0 && !c.method.Fallback.TakesErr {
		return failed + "\n" + c.instead("")
	}
	return c.failure(failed)
}

// failure returns the statements that return an error of the limiter, or call the fallback if the method has no error result:
//
//	return nil, err
func (c *caller) failure(err string) string {
	if c.method.Error < 0 {
		return c.instead(err)
	}
	values := make([]string, len(c.results))
	for i, r := range c.method.Results {
		if values[i] = c.zero(r.Type); asWrapper(c.method.Returns[i]) {
			values[i] = "nil"
		}
	}
	values[c.method.Error] = err
	return "return " + listed(values, "")
}

// instead returns the statements that call the fallback and return its results:
//
//	return sendLater(ctx, phone)
func (c *caller) instead(err string) string {
	fallback := c.method.Fallback
	args := c.arguments(fallback.Spread)
	if fallback.TakesErr {
		args = append(args, err)
	}
	if len(c.results) == 0 {
		return hugging(c.fallback(fallback), args...) + "\nreturn"
	}
	return c.handOut(c.fallback(fallback), args)
}

// fallback returns the Go expression for the function to call:
//
//	queue.Push
func (c *caller) fallback(f *model.Fallback) string {
	args := ""
	if f.Generic {
		args = c.generic
	}
	switch {
	case f.Of == model.OfNext:
		return c.receiver + "." + f.Name
	case f.Of == model.OfType:
		return "new(" + f.Qualifier + ")." + f.Name
	case f.Import != nil:
		return c.Import(f.Import) + "." + f.Name + args
	case f.Of == model.OfValue:
		return f.Qualifier + "." + f.Name
	}
	return f.Name + args
}
