package emit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

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
	_, limits := fieldsOf(w.Wrapper)
	w.receiver = w.receiverName()
	decls := append([]*jen.Statement{w.guardType(limits), w.guardConstructor(limits), w.rulesFunc(), w.typeVar()}, w.sharedVars()...)
	for _, m := range w.Methods {
		f := w.function(m, append(typeParamNames(w.Wrapper), w.receiver)...)
		f.guards, f.limits = true, w.receiver+"."+limits
		f.first = []string{f.needsGuard(w)}
		if m.LooksBack() {
			f.done, f.failed = f.Take("done", "finish"), f.errorName()
			f.first = append(f.first, f.done+" = func("+strings.Join(f.pointerTypes(false), ", ")+") {} // for a refused call")
		}
		body := f.body()
		decls = append(append(decls, w.vars(m)...), comment(guardDoc(w.Wrapper, m)).Id(f.head+f.guardSignature()).Block(body...))
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
	with := w.block.Inside(w.imports.Names()...).Take("limiter", "limits")
	return comment(wrapped(fmt.Sprintf("%s returns a guard with the limits declared on %s.", w.New, link(w.Object.Name())))).
		Func().Id(w.New + w.params).Params(jen.Id(with).Id("*" + w.ratelimit("Limiter"))).Op("*").Id(own).
		Block(jen.Return(jen.Id(literal("&"+own, limits+": "+w.on(with)))))
}

// needsGuard returns the statement that panics if there is no guard:
//
//	wrap.NeedGuard("shop.Service", g != nil && g.limits != nil)
func (f *function) needsGuard(w *wrapper) string {
	return f.wrap("NeedGuard") + "(" + quote(w.Scope) + ", " + w.receiver + " != nil && " + f.limits + " != nil)"
}

// guardSignature returns the parameters of the method, and the results of the guard's method: an error, or done and an error:
//
//	(ctx context.Context, user string) (done func(order **Order, err *error), err error)
func (f *function) guardSignature() string {
	results := "error"
	if f.done != "" {
		results = "(" + f.done + " func(" + strings.Join(f.pointerTypes(true), ", ") + "), " + f.failed + " error)"
	}
	return f.parameters(results) + " " + results
}

// pointerTypes returns the types of the pointers to the results of the method, which done takes. If named is true and the results have
// names, these stand before the types:
//
//	order **Order, err *error
func (f *function) pointerTypes(named bool) (all []string) {
	for i := range f.method.Signature.Results().Len() {
		text := "*" + f.resultType(i)
		if named && f.results[i] != "" {
			text = f.results[i] + " " + text
		}
		all = append(all, text)
	}
	return all
}

// guarded returns the results of a guard's method for an error:
//
//	done, err
func (w *writer) guarded(err string) string {
	if w.done == "" {
		return err
	}
	return w.done + ", " + err
}

// beginGuarded asks the limiter, and returns the func that looks back:
//
//	taken, err := wrap.Begin(ctx, g.limits, serviceBuyRules, wrap.Charge{Key: user, Cost: 1})
//	if err != nil {
//		return done, err
//	}
//	return func(orderPtr **Order, errPtr *error) {
func (w *writer) beginGuarded() {
	taken := w.asksToBegin(w.err)
	w.add("return " + w.lookBack(taken) + ", nil")
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
func (w *writer) lookBack(taken string) string {
	begun := w.stmts
	w.stmts, w.pointed = nil, map[int]bool{}
	pointers, variables := w.pointers()
	var release []string
	if w.method.Releases() {
		release = w.release(taken)
	}
	w.refundAndSettle(taken, pointers, variables)
	first := w.dereferenced(pointers, variables)
	if len(w.stmts) == 0 {
		release[0] = strings.TrimPrefix(release[0], "defer ") // nothing follows
	} else {
		cause := w.Take("cause")
		first = slices.Insert(first, 0, "if "+cause+" := recover(); "+cause+" != nil {\npanic("+cause+") // which has set no results\n}")
	}
	params := w.pointerTypes(false)
	for i := range params {
		params[i] = pointers[i] + " " + params[i]
	}
	w.looks = strings.Join(slices.Concat(release, first, w.stmts), "\n")
	w.stmts = begun
	return "func(" + strings.Join(params, ", ") + ") {\n" + w.looks + "\n}"
}

// refundAndSettle gives the permits back if the call has failed, lets a result hold them, pauses, and settles the cost. The results of the
// call are in variables. For example:
//
//	ok := err == nil
//	defer taken.RefundUnless(ctx, &ok)
func (w *writer) refundAndSettle(taken string, pointers, variables []string) {
	if w.method.Refunds() {
		w.pointed[w.method.Error] = true
		ok := w.Take("ok")
		w.add(ok+" := "+w.succeeded(variables), "defer "+taken+".RefundUnless("+w.context()+", &"+ok+")")
	}
	if h := w.method.Hold; h != nil {
		w.pointed[h.Result] = true
		if w.method.Error >= 0 {
			w.pointed[w.method.Error] = true
		}
		w.keep(variables, func(string) string { return "*" + pointers[h.Result] })
	}
	w.pauseAndSettle(variables, taken)
}

// pointers returns the names of the parameters of done, and of variables for the results that they point to:
//
//	orderPtr, errPtr
//	order, err
func (w *writer) pointers() (pointers, variables []string) {
	for _, name := range w.results {
		if names.IsBlank(name) {
			name = w.Take("result")
		}
		pointers, variables = append(pointers, w.Take(name+"Ptr")), append(variables, name)
	}
	return pointers, variables
}

// dereferenced returns the statement that sets the variables that are read. Pointers that are not read lose their names:
//
//	order, err := *orderPtr, *errPtr
func (w *writer) dereferenced(pointers, variables []string) []string {
	var read, from []string
	for i, name := range variables {
		if !w.pointed[i] {
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
