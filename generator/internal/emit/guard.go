package emit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// guard returns the declarations of a guard:
//
//	type ServiceGuard struct {
//	func NewServiceGuard(limiter *ratelimit.Limiter) *ServiceGuard {
//	func ServiceRules() []ratelimit.Rule {
//	var serviceType = wrap.NewType("shop.Service", serviceBuyRules)
//	var serviceBuyRules = wrap.NewRules("shop.Service.Buy",
//	func (g *ServiceGuard) Buy(ctx context.Context, user string) error {
func (w *wrapper) guard() []*jen.Statement {
	_, limits, _ := fieldsOf(w.Wrapper)
	w.receiver = w.marks.Take(w.around(), "g", "guard")
	var decls []*jen.Statement
	if !w.Part {
		decls = append([]*jen.Statement{w.guardType(limits), w.guardConstructor(limits), w.rulesFunc(), w.typeVar()}, w.sharedVars()...)
	}
	for _, m := range w.Methods {
		f := w.newGuarding(m, limits)
		body := f.statements()
		decls = append(append(decls, w.varsOf(m)...), comment(guardDoc(w.Wrapper, m)).Id(f.head+f.signature()).Block(body))
	}
	return decls
}

// guardType declares the type of the guard:
//
//	type ServiceGuard struct{ limits *wrap.Limits }
func (w *wrapper) guardType(limits string) *jen.Statement {
	doc := fmt.Sprintf("%s enforces the rate limits of %s, whose methods begin with a call of the guard's method of the same name.",
		w.Name, link(w.Object.Name()))
	return comment(joined(wrapped(doc), sharedDoc(w.Wrapper))).
		Type().Id(w.Name + w.params).Struct(jen.Id(limits).Id("*" + w.wrap("Limits")))
}

// guardConstructor declares the function that returns a guard:
//
//	func NewServiceGuard(limiter *ratelimit.Limiter) *ServiceGuard {
//		return &ServiceGuard{limits: serviceType.On(limiter)}
//	}
func (w *wrapper) guardConstructor(limits string) *jen.Statement {
	own := w.Name + w.args
	with := w.marks.Take(w.block.Inside(), "limiter", "limits")
	return comment(wrapped(fmt.Sprintf("%s returns a guard with the limits declared on %s.", w.New, link(w.Object.Name())))).
		Func().Id(w.New + w.params).Params(jen.Id(with).Id("*" + w.ratelimit("Limiter"))).Op("*").Id(own).
		Block(jen.Return(jen.Id(literal("&"+own, limits+": "+w.on(with)))))
}

// guarding writes a method of a guard, which decides whether a call may go on.
type guarding struct {
	*writer
	done string // the result with the func that looks back; "" if there is none
}

// newGuarding returns a guarding for m. The guard has this field with the limits.
func (w *wrapper) newGuarding(m *model.Method, limits string) *guarding {
	f := w.function(m, append(typeParamNames(w.Wrapper), w.receiver)...)
	f.limits = w.limitsOf(m, limits)
	before := []string{w.wrap("NeedGuard") + "(" + quote(w.Scope) + ", " + w.receiver + " != nil && " + w.receiver + "." + limits + " != nil)"}
	done := ""
	if m.LooksBack() {
		done = f.Take("done", "finish")
		before = append(before, done+" = func("+strings.Join(f.pointerTypes(false), ", ")+") {} // for a refused call")
	}
	g := &guarding{f.newWriter(), done}
	g.before, g.leave = before, g.answer
	return g
}

// statements returns the statements of the method:
//
//	wrap.NeedGuard("shop.Service", g != nil && g.limits != nil)
//	return wrap.Take(ctx, g.limits, serviceBuyRules, user)
func (g *guarding) statements() *jen.Statement {
	g.checkContext()
	if g.method.LooksBack() {
		taken := g.begin(g.err, g.refused)
		g.add("return " + g.lookBack(taken) + ", nil")
	} else if asked := g.take(); len(describedRules(g.method)) == 0 {
		g.add("return " + asked)
	} else {
		g.add("if "+g.err+" := "+asked+"; "+g.err+" != nil {\n"+g.refused(g.err)+"\n}", "return nil")
	}
	return g.body()
}

// refused returns the statement that returns the error in the variable err, with the message of its rule:
//
//	return done, err
func (g *guarding) refused(err string) string { return g.described(err, g.answer) }

// answer returns the statement that returns an error:
//
//	return done, err
func (g *guarding) answer(err string) string {
	if g.done == "" {
		return "return " + err
	}
	return "return " + g.done + ", " + err
}

// signature returns the parameters of the method, and the results of the guard's method: an error, or done and an error:
//
//	(ctx context.Context, user string) (done func(order **Order, err *error), err error)
func (g *guarding) signature() string {
	results := "error"
	if g.done != "" {
		results = "(" + g.done + " func(" + strings.Join(g.pointerTypes(true), ", ") + "), " + g.err + " error)"
	}
	return g.parameters(results) + " " + results
}

// pointerTypes returns the types of the pointers to the results of the method, which done takes. If named is true and the results have
// names, these stand before the types:
//
//	order **Order, err *error
func (f *function) pointerTypes(named bool) (all []string) {
	for i := range f.method.Signature.Results().Len() {
		text := "*" + f.imports.Type(f.method.Results[i].Type)
		if named && f.results[i] != "" {
			text = f.results[i] + " " + text
		}
		all = append(all, text)
	}
	return all
}

// lookBack returns the func that a method of the struct defers. After a panic it gives back the permits of calls that run, and no others:
//
//	func(respPtr **Response, _ *error) {
//		if cause := recover(); cause != nil {
//			panic(cause) // which has set no results
//		}
//		resp := *respPtr
//		taken.Settle(ctx, int64(resp.Total))
//	}
func (g *guarding) lookBack(taken string) string {
	begun := g.stmts
	g.stmts = nil
	pointers, variables := g.pointers()
	var release []string
	if g.method.Releases() {
		release = g.release(taken)
	}
	g.refundAndSettle(taken, pointers, variables)
	first := g.dereferenced(pointers, variables)
	if len(g.stmts) == 0 {
		release[0] = strings.TrimPrefix(release[0], "defer ") // nothing follows
	} else {
		cause := g.Take("cause")
		first = slices.Insert(first, 0, "if "+cause+" := recover(); "+cause+" != nil {\npanic("+cause+") // which has set no results\n}")
	}
	params := g.pointerTypes(false)
	for i := range params {
		params[i] = pointers[i] + " " + params[i]
	}
	g.withResults = strings.Join(slices.Concat(release, first, g.stmts), "\n")
	g.stmts = begun
	return "func(" + strings.Join(params, ", ") + ") {\n" + g.withResults + "\n}"
}

// refundAndSettle gives the permits back if the call has failed, lets a result hold them, pauses, and settles the cost. The results of the
// call are in variables. For example:
//
//	ok := err == nil
//	defer taken.RefundUnless(ctx, &ok)
func (g *guarding) refundAndSettle(taken string, pointers, variables []string) {
	if g.method.Refunds() {
		ok := g.Take("ok")
		g.add(ok+" := "+g.succeeded(variables), "defer "+taken+".RefundUnless("+g.context()+", &"+ok+")")
	}
	if h := g.method.Hold; h != nil {
		g.keep(variables, func(string) string { return "*" + pointers[h.Result] })
	}
	g.pauseAndSettle(variables, taken)
}

// pointers returns the names of the parameters of done, and of variables for the results that they point to:
//
//	orderPtr, errPtr
//	order, err
func (g *guarding) pointers() (pointers, variables []string) {
	for _, name := range g.results {
		if names.IsBlank(name) {
			name = g.Take("result")
		}
		pointers, variables = append(pointers, g.Take(names.Wished(name)+"Ptr")), append(variables, name)
	}
	return pointers, variables
}

// dereferenced returns the statement that sets the variables that are read. Pointers that are not read lose their names:
//
//	order, err := *orderPtr, *errPtr
func (g *guarding) dereferenced(pointers, variables []string) []string {
	var read, from []string
	text := strings.Join(g.stmts, "\n")
	for i, name := range variables {
		if !strings.Contains(text, name) {
			pointers[i] = "_"
			continue
		}
		read, from = append(read, name), append(from, "*"+pointers[i])
	}
	if read == nil {
		return nil
	}
	return []string{strings.Join(read, ", ") + " := " + strings.Join(from, ", ")}
}
