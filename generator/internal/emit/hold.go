package emit

import "go/types"

// release returns the deferred statement that gives the permits of calls that run back, unless a result holds them:
//
//	defer taken.Release(ctx)
func (w *writer) release(taken string) []string {
	if w.method.Hold == nil {
		return []string{"defer " + taken + ".Release(" + w.context() + ")"}
	}
	w.hold = w.Take("hold")
	return []string{w.hold + " := " + w.wrap("NewHold") + "(" + w.context() + ", " + taken + ")", "defer " + w.hold + ".Return()"}
}

// keep lets a result hold the permits of calls that run, if there is hold=. The results are in variables. The function target returns what
// to assign the result to that holds the permits. For example:
//
//	if hold.Keeps(resp, err) {
//		resp.Body = hold.Body(resp.Body)
//	}
func (w *writer) keep(variables []string, target func(result string) string) {
	h := w.method.Hold
	if h == nil {
		return
	}
	result, err := variables[h.Result], "nil"
	if w.method.Error >= 0 {
		err = variables[w.method.Error]
	}
	body, to := "", target(result)
	switch {
	case h.Body:
		body = result + ".Body = " + w.hold + ".Body(" + result + ".Body)"
	case h.Func != "":
		body = to + " = " + w.wrap(h.Func) + "(" + w.hold + ", " + result + ")"
	default:
		body = w.holding(result, to)
	}
	w.add("if " + w.hold + ".Keeps(" + result + ", " + err + ") {\n" + body + "\n}")
}

// holding returns the statements that assign a value to another variable, with methods that give the permits back:
//
//	type plain struct{ Rows }
//	type held struct {
//		plain
//		wrap.Closer
//	}
//	rows = held{plain{rows}, hold.Closer(rows)}
func (w *writer) holding(result, to string) (body string) {
	h := w.method.Hold
	t := w.method.Results[h.Result].Type
	hides := func(field string) bool { // a method of t
		method, _, _ := types.LookupFieldOrMethod(t, false, w.pkg, field)
		return method != nil
	}
	hint := "plain"
	for hides(hint) {
		hint += "Value"
	}
	plain, held := w.Take(hint), w.Take("held")
	field := func(name, typ string) string { // the type of a field that hides no method
		if hides(name) {
			alias := w.Take("the" + name)
			body += "type " + alias + " = " + typ + "\n"
			return alias
		}
		return typ
	}
	of := field(t.(interface{ Obj() *types.TypeName }).Obj().Name(), w.imports.Type(t))
	fields, values := plain+"\n", plain+"{"+result+"}"
	if h.Closes {
		fields, values = fields+field("Closer", w.wrap("Closer"))+"\n", values+", "+w.hold+".Closer("+result+")"
	}
	if h.Receives != nil {
		fields += field("Receiver", w.wrap("Receiver")+"["+w.imports.Type(h.Receives)+"]") + "\n"
		values += ", " + w.wrap("Receive") + "(" + w.hold + ", " + result + ")"
	}
	return body + "type " + plain + " struct{ " + of + " }\ntype " + held + " struct {\n" + fields + "}\n" + to + " = " + held + "{" + values + "}"
}
