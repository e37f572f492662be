package emit

import "github.com/dave/jennifer/jen"

// limitFunc declares the function that returns a limited func of a func type:
//
//	func LimitJob(next Job, limiter *ratelimit.Limiter) Job {
//		next, limiter = wrap.Next("jobs.Job", next), wrap.Limiter("jobs.Job", limiter, jobFuncRules)
//		return func() error {
func (w *wrapper) limitFunc() *jen.Statement {
	taken := w.around()
	next, limiter := taken.Take("next", "wrapped"), taken.Take("limiter", "limits")
	f := w.function(w.Methods[0], next, limiter)
	f.target, f.next, f.limiter = next, next, limiter
	check := jen.Id(listed([]string{next + ", " + limiter + " = " + w.checked("Next", next), w.registered(limiter)}, ""))
	return comment(limitDoc(w.Wrapper, next)).Id(w.head(next, limiter)).Id(w.wrapped).Block(check, jen.Return(f.literal()))
}

// limitFields declares the function that returns a struct with limited funcs:
//
//	func LimitClient(next Client, limiter *ratelimit.Limiter) Client {
//		limiter = wrap.Limiter("api.Client", limiter, clientDoRules)
//		limited := next
//		if next.Do != nil {
//			limited.Do = func() error {
func (w *wrapper) limitFields() *jen.Statement {
	taken := w.around()
	next, limiter, limited := taken.Take("next", "wrapped"), taken.Take("limiter", "limits"), taken.Take("limited", "copied")
	body := []jen.Code{jen.Id(limiter + " = " + w.registered(limiter)), jen.Id(limited).Op(":=").Id(next)}
	for _, m := range w.Methods {
		if len(m.Rules) == 0 {
			continue // the field is copied
		}
		f := w.function(m, next, limiter, limited)
		f.target, f.next, f.limiter = next+"."+m.Name, next, limiter
		body = append(body, jen.If(jen.Id(f.target).Op("!=").Nil()).Block(
			jen.Id(limited).Dot(m.Name).Op("=").Add(f.literal()),
		))
	}
	return comment(limitDoc(w.Wrapper, next)).Id(w.head(next, limiter)).Id(w.wrapped).Block(append(body, jen.Return(jen.Id(limited)))...)
}

// literal returns the method as a function literal:
//
//	func(id string) error {
//		if err := wrap.Take(context.Background(), limiter, clientDoRules, id); err != nil {
func (f *function) literal() *jen.Statement {
	body := f.body()
	return jen.Id("func" + f.signature()).Block(body...)
}
