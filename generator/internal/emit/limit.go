package emit

import "github.com/dave/jennifer/jen"

// limitFunc declares the function that returns a limited func of a func type:
//
//	func LimitJob(next Job, limiter *ratelimit.Limiter) Job {
//		next, limits := wrap.Next("jobs.Job", next), jobType.On(limiter)
//		return func() error {
func (w *wrapper) limitFunc() *jen.Statement {
	taken := w.around()
	next, limiter, limits := w.marks.Take(taken, "next", "wrapped"), w.marks.Take(taken, "limiter"), w.marks.Take(taken, "limits")
	c := w.newCaller(w.Methods[0], next, limits, next, next, limits)
	check := jen.Id(listed([]string{next + ", " + limits + " := " + w.checked(next), w.on(limiter)}, ""))
	return comment(limitDoc(w.Wrapper, next)).Id(w.head(next, limiter)).Id(w.wrapped).Block(check, jen.Return(c.literal()))
}

// limitFields declares the function that returns a struct with limited funcs:
//
//	func LimitClient(next Client, limiter *ratelimit.Limiter) Client {
//		limits := clientType.On(limiter)
//		limited := next
//		if next.Do != nil {
//			limited.Do = func() error {
func (w *wrapper) limitFields() *jen.Statement {
	taken := w.around()
	next, limiter := w.marks.Take(taken, "next", "wrapped"), w.marks.Take(taken, "limiter")
	limits, limited := w.marks.Take(taken, "limits"), w.marks.Take(taken, "limited", "copied")
	body := []jen.Code{jen.Id(limits + " := " + w.on(limiter)), jen.Id(limited).Op(":=").Id(next)}
	for _, m := range w.Methods {
		if len(m.Rules)+len(m.Returns)+len(m.Takes) == 0 {
			continue // the field is copied
		}
		c := w.newCaller(m, next, limits, next+"."+m.Name, next, limits, limited)
		body = append(body, jen.If(jen.Id(c.target).Op("!=").Nil()).Block(
			jen.Id(limited).Dot(m.Name).Op("=").Add(c.literal()),
		))
	}
	return comment(limitDoc(w.Wrapper, next)).Id(w.head(next, limiter)).Id(w.wrapped).Block(append(body, jen.Return(jen.Id(limited)))...)
}

// literal returns the method as a function literal:
//
//	func(id string) error {
//		if err := wrap.Take(context.Background(), limits, clientDoRules, id); err != nil {
func (c *caller) literal() *jen.Statement {
	body := c.statements()
	return jen.Id("func" + c.signature()).Block(body)
}
