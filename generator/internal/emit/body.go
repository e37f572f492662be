package emit

import (
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// writer writes the statements of a method that has rules. It implements expr.Names for the code of expressions.
type writer struct {
	*function
	stmts []string
	fail  func(expr.Failure) string // returns the statements for a failure of the current expression

	returned []string          // the variables with the results of the wrapped call, after the call
	subjects map[string]string // Go expressions of subjects that are computed already, by their templates
	held     map[string]string // the variables that hold the results of calls, by the calls
	facts    expr.Facts        // the values that are known not to be nil
}

// Variable implements expr.Names.
func (w *writer) Variable(i int) string {
	return slices.Concat(w.params, []string{w.next}, w.returned)[i]
}

// Local implements expr.Names.
func (w *writer) Local(hint string) string { return w.Take(hint) }

// Held implements expr.Names.
func (w *writer) Held(call string) string { return w.held[call] }

// Hold implements expr.Names.
func (w *writer) Hold(call, name string) { w.held[call] = name }

// Fail implements expr.Names.
func (w *writer) Fail(f expr.Failure) string { return w.fail(f) }

// body returns the statements of the method.
func (f *function) body() []jen.Code {
	before := f.limitArguments()
	if len(f.method.Rules) == 0 {
		return statements(append(before, f.forward())...)
	}
	w := &writer{function: f, stmts: before, subjects: map[string]string{}, held: map[string]string{}, facts: expr.Facts{}}
	w.checkContext()
	if refunds(f.method) || settles(f.method) {
		w.begin()
	} else {
		w.take()
	}
	return statements(w.stmts...)
}

func statements(texts ...string) []jen.Code {
	codes := make([]jen.Code, len(texts))
	for i, s := range texts {
		codes[i] = jen.Id(s)
	}
	return codes
}

// take asks the limiter, and then makes the wrapped call.
func (w *writer) take() {
	fn, ask := w.wrap("Take"), w.takes
	if needsCharge(w.method) {
		fn, ask = w.wrap("TakeCharges"), w.charges
	}
	asked := w.asked(fn, ask)
	err := w.errorName()
	w.stmts = append(w.stmts, "if "+err+" := "+asked+"; "+err+" != nil {\n"+w.refusal(err)+"\n}", w.forward())
}

// asked writes a call of fn, which asks the limiter. The last arguments depend on the rules.
func (w *writer) asked(fn string, arguments func() []string) string {
	args := arguments()
	return headed(fn, strings.Join([]string{w.context(), w.limiter, w.rulesOf[w.method]}, ", "), args...)
}

// errorName returns the name of the variable for the refusal. It may hide other variables, but neither a parameter, which a message
// may contain, nor what the type, the package or an import calls err.
func (f *function) errorName() string {
	if f.block.Inside(append(f.imports.Names(), f.params...)...).Has("err") {
		return f.Take("err")
	}
	f.Reserve("err")
	return "err"
}

// context returns the Go expression for the context of the call.
func (f *function) context() string {
	switch m := f.method; {
	case m.Context < 0:
		return f.background()
	case m.ByMethod:
		return f.params[m.Context] + ".Context()"
	default:
		return f.params[m.Context]
	}
}

func (f *function) background() string { return f.Import(contextPackage) + ".Background()" }

// mayLackContext reports whether the context comes from a parameter that may be nil.
func mayLackContext(m *model.Method) bool {
	if !m.ByMethod {
		return false
	}
	switch m.Params[m.Context].Type.Underlying().(type) {
	case *types.Pointer, *types.Interface:
		return true
	}
	return false
}

// checkContext adds a check that the parameter that has the context is not nil.
func (w *writer) checkContext() {
	if !mayLackContext(w.method) {
		return
	}
	name, param := w.params[w.method.Context], w.method.Params[w.method.Context]
	isNil := name + " == nil"
	if types.IsInterface(param.Type) { // which may hold a nil pointer; a type parameter counts as one
		isNil = w.wrap("IsNil") + "(" + name + ")"
	}
	err := w.rulesOf[w.method] + ".NilKey(0, " + quote(param.Name) + ")"
	w.stmts = append(w.stmts, "if "+isNil+" {\n"+w.keyFailure(w.background(), err)+"\n}")
	w.facts[name] = true
}

// code writes an expression of a rule. If the expression fails, the method returns a KeyError.
func (w *writer) code(c *expr.Code, r *model.Rule, src string) expr.Written {
	w.fail = func(f expr.Failure) string { return w.keyFailure(w.context(), w.keyError(r, src, f)) }
	return w.render(c)
}

// keyFailure returns the statements that report a KeyError to the limiter's observers and return it.
func (w *writer) keyFailure(ctx, err string) string {
	failed := headed(w.wrap("Failed"), ctx+", "+w.limiter, err)
	if w.method.Error < 0 && !w.method.Fallback.TakesErr {
		return failed + "\n" + w.failure("")
	}
	return w.failure(failed)
}

// keyError returns the Go expression for the error of a failed expression of r.
func (w *writer) keyError(r *model.Rule, src string, f expr.Failure) string {
	rules, rule := w.rulesOf[w.method], strconv.Itoa(slices.Index(w.method.Rules, r))
	switch {
	case f.Err != "":
		return hugging(rules+".KeyError", rule, quote(src), f.Err)
	case f.Nil != "":
		return hugging(rules+".NilKey", rule, quote(f.Nil))
	}
	return hugging(rules+".Missing", rule, quote(src), quote(f.Reason))
}

// render adds the statements of c, without checks that were made before.
func (w *writer) render(c *expr.Code) expr.Written {
	written := c.Write(w, w.facts)
	w.stmts = append(w.stmts, written.Stmts...)
	return written
}
