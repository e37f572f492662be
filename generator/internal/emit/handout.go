package emit

import (
	"go/types"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// handOutFunc declares the function that puts limits on a value that a wrapper hands out:
//
//	func handOutTx(tx Tx, limits *wrap.Limits) Tx {
//		if _, ok := tx.(*LimitedTx); ok || wrap.IsNil(tx) {
//			return tx
//		}
//		limited := NewLimitedTx(tx, limits.Limiter())
//		limited.handedOut = true
//		return limited
//	}
func (w *wrapper) handOutFunc() *jen.Statement {
	scope := w.block.Inside()
	value, limits := w.marks.Take(scope, names.Lower(w.Object.Name()), "value"), w.marks.Take(scope, "limits")
	body, result := "", w.wrapped
	stays := "Nil stays nil."
	made := w.New + w.args + "(" + value + ", " + limits + ".Limiter())"
	switch w.Kind {
	case model.Fields:
		stays = ""
	case model.Interface:
		ok := w.marks.Take(scope, "ok")
		body = "if _, " + ok + " := " + value + ".(*" + w.Name + w.args + "); " + ok + " || " + w.wrap("IsNil") + "(" + value + ") {\nreturn " + value + "\n}\n"
		stays = "Nil and wrappers stay as they are."
		if w.TakeBack != "" {
			limited := w.marks.Take(scope, "limited")
			body += limited + " := " + made + "\n" + limited + "." + w.handedOut + " = true\n"
			made = limited
		}
	case model.Concrete:
		result = "*" + w.Name + w.args
		fallthrough
	default:
		body = "if " + value + " == nil {\nreturn nil\n}\n"
	}
	doc := w.HandOut + " puts the limits of " + link(w.Object.Name()) + " on a value that a wrapper hands out. " + stays
	head := "func " + w.HandOut + w.params
	return comment(wrapped(doc)).Id(head + brackets(head+" "+result, value+" "+w.wrapped, limits+" *"+w.wrap("Limits"))).Id(result).
		Block(jen.Id(body + "return " + made))
}

// takeBackFunc declares the function that returns what a value that was handed out wraps:
//
//	func takeBackTx(tx Tx) Tx {
//		if limited, ok := tx.(*LimitedTx); ok && limited.handedOut {
//			return limited.next
//		}
//		return tx
//	}
func (w *wrapper) takeBackFunc() *jen.Statement {
	scope := w.block.Inside()
	limited, own := w.marks.Take(scope, "limited"), "*"+w.Name+w.args
	doc := w.TakeBack + " returns the value that limited wraps. Nil stays nil."
	param, body := limited+" "+own, "if "+limited+" == nil {\nreturn nil\n}\nreturn "+limited+"."+w.next
	if w.Kind == model.Interface {
		value, ok := w.marks.Take(scope, names.Lower(w.Object.Name()), "value"), w.marks.Take(scope, "ok")
		doc = w.TakeBack + " returns the value that " + value + " wraps if a wrapper handed " + value + " out. Other values stay as they are."
		param = value + " " + w.wrapped
		body = "if " + limited + ", " + ok + " := " + value + ".(" + own + "); " + ok + " && " + limited + " != nil && " +
			limited + "." + w.handedOut + " {\nreturn " + limited + "." + w.next + "\n}\nreturn " + value
	}
	return comment(wrapped(doc)).Id("func " + w.TakeBack + w.params + "(" + param + ") " + w.wrapped).Block(jen.Id(body))
}

// handedOut returns the Go expression for a value that goes out to the caller, with the limits of its type:
//
//	handOutRepo(repo, r.limits)
func (c *caller) handedOut(l *model.Limited, value string) string {
	if l.Kind == model.Concrete && l.Value {
		value = "&" + value
	}
	return c.instance(l.HandOut, l) + "(" + value + ", " + c.limits + ")"
}

// takenBack returns the Go expression for a value that goes in to the wrapped value, without the limits with which it was handed out:
//
//	takeBackRepo(repo)
func (c *caller) takenBack(p *model.Passage, value string) string {
	back := c.instance(p.TakeBack, p.Limited)
	switch {
	case p.Many:
		return c.wrap("TakeBack") + "(" + value + ", " + back + ")"
	case p.Kind == model.Concrete && p.Value:
		return c.wrap("ValueOf") + "(" + back + "(" + value + "))"
	}
	return back + "(" + value + ")"
}

// limitedResults returns the variables with the results of the wrapped call. Those of annotated types get limits:
//
//	handOutRepo(repo, r.limits), err
func (c *caller) limitedResults(variables []string) []string {
	values := slices.Clone(variables)
	for i, p := range c.method.Returns {
		values[i] = c.handedOut(p.Limited, variables[i])
	}
	return values
}

// asWrapper reports whether the wrapper's method has the wrapper of a struct in place of the struct.
func asWrapper(p *model.Passage) bool {
	return p != nil && p.Limited != nil && p.Kind == model.Concrete
}

// typeOf returns the text of the type of a parameter or a result. It is the wrapper in place of an annotated struct:
//
//	*LimitedRepo
func (f *function) typeOf(t types.Type, p *model.Passage) string {
	if asWrapper(p) {
		return "*" + f.instance(p.Name, p.Limited)
	}
	return f.imports.Type(t)
}

// instance returns a generated name with the type arguments of l:
//
//	LimitedRepo[string]
func (f *function) instance(name string, l *model.Limited) string {
	var args []string
	for _, t := range l.Args {
		args = append(args, f.imports.Type(t))
	}
	if args == nil {
		return name
	}
	return name + "[" + strings.Join(args, ", ") + "]"
}

// handOut returns the statements that return the results of a call:
//
//	repo, err := r.next.WithTx(tx)
//	return handOutRepo(repo, r.limits), err
func (c *caller) handOut(fn string, args []string) string {
	switch {
	case len(c.results) == 0:
		return hugging(fn, args...)
	case len(c.method.Returns) == 0:
		return hugging("return "+fn, args...)
	}
	if l := c.method.Returns[0]; len(c.results) == 1 && (l.Kind != model.Concrete || !l.Value) {
		if one := "return " + c.handedOut(l.Limited, call(fn, args...)); names.Width(one) <= longest {
			return one
		}
	}
	outer := c.scope
	c.scope = outer.Inside() // the names are free again after these statements, which leave the function
	defer func() { c.scope = outer }()
	variables, assign := c.resultVariables("")
	return hugging(listed(variables, " "+assign+" "+fn), args...) + "\nreturn " + listed(c.limitedResults(variables), "")
}

// resultVariables returns the variables for the results of the wrapped call, and how to assign to them. The error goes to err if that is
// declared already:
//
//	repo, err :=
func (c *caller) resultVariables(err string) (variables []string, assign string) {
	assign = "="
	if at := c.method.Error; at >= 0 && err == "" {
		if err = c.results[at]; names.IsBlank(err) {
			err, assign = c.err, ":="
		}
	}
	for i, name := range c.results {
		switch p := c.method.Returns[i]; {
		case i == c.method.Error:
			name = err
		case !names.IsBlank(name):
		case p != nil:
			name, assign = c.Take(names.Lower(p.Object.Name())), ":="
		default:
			name, assign = c.Take("result"), ":="
		}
		variables = append(variables, name)
	}
	return variables, assign
}
