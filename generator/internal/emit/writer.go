package emit

import (
	"cmp"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// writer writes the statements that methods of wrappers and guards have in common. It implements expr.Names for the code of expressions.
type writer struct {
	*function
	before []string // the statements before those in stmts, which check the context
	stmts  []string
	err    string                     // the variable for errors of expressions
	leave  func(failed string) string // returns the statements that leave the method with an error of an expression

	receiver string            // the wrapped value
	returned []string          // the variables with the results of the wrapped call, after the call
	values   map[string]string // the Go expressions of values that are computed already, by the uses and texts of their expressions

	locals *names.Scope // the names of local variables in the expression that is being written

	hold string // the variable with what a result holds, for hold=

}

// Variable implements expr.Names. It returns the name of a parameter or a result, or the wrapped value:
//
//	s.next
func (w *writer) Variable(i int) string {
	return slices.Concat(w.params, []string{w.receiver}, w.returned)[i]
}

// write returns the Go of an expression. Its local variables are in the scope of a func literal.
func (w *writer) write(c *expr.Code) expr.Written {
	w.locals = w.scope.Inside()
	return c.Write(w)
}

// Local implements expr.Names.
func (w *writer) Local(hint string) string { return w.marks.Take(w.locals, hint) }

// Package implements expr.Names. Equal values share a variable:
//
//	var senderSendPattern = regexp.MustCompile("^\\+41")
func (w *writer) Package(hint, value string) string {
	name := w.ready[value]
	if name == "" {
		name = w.variables.Take(w.variable + names.Upper(hint))
		w.block.Reserve(name)
		w.ready[value] = name
		w.vars[w.method] = append(w.vars[w.method], jen.Var().Id(name).Op("=").Id(value))
	}
	return name
}

// newWriter returns a writer for the statements of f.
func (f *function) newWriter() *writer {
	return &writer{function: f, err: f.errorName(), values: map[string]string{}}
}

// body returns all statements for jennifer, which prints an identifier as it is.
func (w *writer) body() *jen.Statement {
	w.text = strings.Join(append(w.before, w.stmts...), "\n")
	w.withResults = cmp.Or(w.withResults, w.text)
	return jen.Id(w.text)
}

func (w *writer) add(stmts ...string) { w.stmts = append(w.stmts, stmts...) }

// take asks the limiter:
//
//	wrap.Take(ctx, s.limits, senderSendRules, phone)
func (w *writer) take() string {
	if needsCharge(w.method) {
		return w.asked(w.wrap("TakeCharges"), w.charges)
	}
	return w.asked(w.wrap("Take"), w.takes)
}

// begin asks the limiter about a call whose rules look back, and returns the variable with the charge. The error goes to err. The function
// refused returns the statements that leave the method with it. For example:
//
//	taken, err := wrap.Begin(ctx, a.limits, askRules, wrap.Charge{Key: user, Cost: 500})
//	if err != nil {
//		return nil, err
//	}
func (w *writer) begin(err string, refused func(err string) string) (taken string) {
	asked := w.asked(w.wrap("Begin"), w.charges)
	taken = w.Take("taken")
	w.add(taken+", "+err+" := "+asked, "if "+err+" != nil {\n"+refused(err)+"\n}")
	return taken
}

// asked returns a call of fn, which asks the limiter. The last arguments depend on the rules. For example:
//
//	wrap.Take(ctx, s.limits, senderSendRules, phone)
func (w *writer) asked(fn string, arguments func() []string) string {
	return w.forRules(fn, strings.Join([]string{w.context(), w.limits, w.rulesOf[w.method]}, ", "), arguments()...)
}

// errorName returns the name of the variable for the refusal: err, unless a parameter, an import, the type or the package has that name. A
// message may contain a parameter. For example:
//
//	failure
func (f *function) errorName() string {
	mark := f.marks.New("err")
	f.marks.Later(func() {
		isParam := func(param string) bool { return f.marks.In(param) == "err" }
		if f.block.Has("err") || slices.ContainsFunc(f.declared, isParam) {
			f.marks.Set(mark, f.scope.Take("failure"))
			return
		}
		f.scope.Reserve("err")
	})
	return mark
}

// context returns the Go expression for the context of the call, such as ctx or, for an *http.Request:
//
//	r.Context()
func (w *writer) context() string {
	switch m := w.method; {
	case m.OwnContext != nil:
		return w.receiver + ".Context()"
	case m.Context < 0:
		return w.background()
	case m.ByMethod:
		return w.params[m.Context] + ".Context()"
	default:
		return w.params[m.Context]
	}
}

// background returns the Go expression for a context that never ends:
//
//	context.Background()
func (f *function) background() string { return f.Import(contextPackage) + ".Background()" }

// checkContext checks that the parameter that has the context is not nil:
//
//	if r == nil {
//		return wrap.Failed(context.Background(), h.limits, handlerServeRules.NilKey("r"))
//	}
func (w *writer) checkContext() {
	if len(w.method.Rules) == 0 || !w.method.ByMethod {
		return
	}
	name, param := w.params[w.method.Context], w.method.Params[w.method.Context]
	isNil := name + " == nil"
	switch param.Type.Underlying().(type) {
	case *types.Pointer:
	case *types.Interface: // which may hold a nil pointer; a type parameter counts as one
		isNil = w.wrap("IsNil") + "(" + name + ")"
	default:
		return
	}
	err := w.rulesOf[w.method] + ".NilKey(" + quote(param.Name) + ")"
	w.before = append(w.before, "if "+isNil+" {\n"+w.keyFailure(w.background(), err)+"\n}")
}

// rulesFor returns the Go expression for the rules of the method, for errors about r. A rule without a name of its own is that of the
// method. For example:
//
//	senderSendRules.Named("login")
func (w *writer) rulesFor(r *model.Rule) string {
	if r.Declared.Name == w.method.Scope {
		return w.rulesOf[w.method]
	}
	return w.rulesOf[w.method] + ".Named(" + quote(r.Declared.Name) + ")"
}

// keyFailure returns the statements that report a KeyError to the limiter's observers and return it:
//
//	return wrap.Failed(ctx, s.limits, err)
func (w *writer) keyFailure(ctx, err string) string {
	return w.leave(headed(w.wrap("Failed"), ctx+", "+w.limits, err))
}

// ifFailed returns the statement that leaves the method after an error of an expression:
//
//	if err != nil {
func (w *writer) ifFailed(leave string) string { return "if " + w.err + " != nil {\n" + leave + "\n}" }

// code returns the Go expression for the value of an expression. If the expression is a choice, may fail or stands in several rules, its
// value goes into a variable, with a name like hint if the expression suggests none. An expression is written once for each hint:
//
//	name, err := wrap.Value(docsPutRules, "doc.Owner.Name", func() string { return doc.Owner.Name })
//	if err != nil {
//		return nil, wrap.Failed(ctx, d.limits, err)
//	}
func (w *writer) code(c *expr.Code, rules, src, hint string) string {
	id := hint + " " + c.Text
	if known := w.values[id]; known != "" {
		return known
	}
	written := w.write(c)
	if !written.Fails && written.Value != "" && (token.IsIdentifier(written.Value) || !w.repeats(c)) {
		return written.Value
	}
	name := w.Take(cmp.Or(c.Name(), hint))
	w.values[id] = name
	if !written.Fails {
		w.add(name + " := " + inline(written))
		return name
	}
	w.add(island(name+", "+w.err+" := "+w.wrap("Value"), written, rules, quote(src)), w.ifFailed(w.keyFailure(w.context(), w.err)))
	return name
}

// repeats reports whether the charges of the rules have an expression, which is not constant, more than once.
func (w *writer) repeats(c *expr.Code) bool {
	uses := 0
	for _, r := range w.method.Rules {
		for _, other := range r.Charges() {
			if other.Text == c.Text {
				uses++
			}
		}
	}
	return uses > 1 && c.Constant == nil
}

// island returns a call of fn whose last argument computes a value:
//
//	wrap.Value(docsPutRules, "doc.Owner.Name", func() string { return doc.Owner.Name })
func island(fn string, written expr.Written, args ...string) string {
	one := hugging(fn, append(args, "func() "+written.Type+" { "+written.Body+" }")...)
	if strings.Contains(one, "\n") {
		return hugging(fn, append(args, closure(written))...)
	}
	return one
}

// inline returns the Go expression for a value:
//
//	func() string { return doc.Owner }()
func inline(written expr.Written) string {
	if written.Value != "" {
		return written.Value
	}
	return closure(written) + "()"
}

// closure returns the func literal that returns a value:
//
//	func() string {
func closure(written expr.Written) string {
	return "func() " + written.Type + " {\n" + written.Body + "\n}"
}
