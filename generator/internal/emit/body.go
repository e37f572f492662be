package emit

import (
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/ratelimit-go/ratelimit/generator/internal/key"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// writer writes the statements that come before the call. It gives the code of expressions its names.
type writer struct {
	*function
	method *model.Method
	stmts  []string
	fail   func(reason, err string) string // where the expression that is being written cannot be computed

	subjects map[string]string // expressions for subjects that were computed already, by their templates
	checked  map[string]bool   // parameters that were found not to be nil
}

// Import implements key.Names.
func (w *writer) Import(path string) string { return w.imports.Name(path) }

// Param implements key.Names.
func (w *writer) Param(i int) string { return w.params[i] }

// Local implements key.Names.
func (w *writer) Local(hint string) string { return w.Take(hint) }

// Fail implements key.Names.
func (w *writer) Fail(reason string) string { return w.fail(reason, "") }

// FailErr implements key.Names.
func (w *writer) FailErr(err string) string { return w.fail("", err) }

// limits returns the statements that ask the limiter; none for a method without rules.
func (f *function) limits(m *model.Method) []jen.Code {
	if len(m.Rules) == 0 {
		return nil
	}
	w := &writer{function: f, method: m, subjects: map[string]string{}, checked: map[string]bool{}}
	err := f.errorName(m)
	call, ask := ".Take(", w.takes
	if charges(m) {
		call, ask = ".Charge(", w.charges
	}
	args := ask()
	args = append([]string{f.context(m), f.rulesOf[m]}, args...)
	asked := "if " + err + " := " + f.limiter + call + laidOut(args) + "); " + err + " != nil {\n"
	w.stmts = append(w.stmts, asked+w.refusal(err)+"\n}")
	codes := make([]jen.Code, len(w.stmts))
	for i, s := range w.stmts {
		codes[i] = jen.Id(s)
	}
	return codes
}

// laidOut separates arguments, of which those behind the first two get lines of their own where they are long.
func laidOut(args []string) string {
	const width = 80
	if line := strings.Join(args, ", "); len(line) <= width {
		return line
	}
	return strings.Join(args[:2], ", ") + ",\n" + strings.Join(args[2:], ",\n") + ",\n"
}

// errorName names the refusal. A result of that name may be hidden, a parameter not: messages may name it.
func (f *function) errorName(m *model.Method) string {
	if slices.Contains(f.params, "err") {
		return f.Take("err")
	}
	f.Reserve("err")
	return "err"
}

func (f *function) context(m *model.Method) string {
	if m.Context < 0 {
		return f.imports.Name("context") + ".Background()"
	}
	return f.params[m.Context]
}

// charges reports whether the rules of m are not all charged one permit for each call.
func charges(m *model.Method) bool {
	return slices.ContainsFunc(m.Rules, func(r *model.Rule) bool { return r.When != nil || r.Rule.Cost.Pos.IsValid() })
}

// takes writes the subjects of the rules.
func (w *writer) takes() []string {
	var args []string
	for _, r := range w.method.Rules {
		args = append(args, w.subject(r))
	}
	return args
}

// subject writes the subject of a rule; one that several rules have is computed once.
func (w *writer) subject(r *model.Rule) string {
	if len(r.Subject) == 0 {
		return `""`
	}
	if s, ok := w.subjects[r.Key.Value]; ok {
		return s
	}
	value := w.key(r)
	if !identifierOnly.MatchString(value) && w.shared(r) {
		name := w.Take("key")
		w.stmts = append(w.stmts, name+" := "+value)
		value = name
	}
	w.subjects[r.Key.Value] = value
	return value
}

// shared reports whether another rule has the template of r's key.
func (w *writer) shared(r *model.Rule) bool {
	return slices.ContainsFunc(w.method.Rules, func(o *model.Rule) bool { return o != r && o.Key.Value == r.Key.Value })
}

// charges writes what each rule is charged. Where a rule has a condition, its key is only computed if that holds.
func (w *writer) charges() []string {
	charge := w.imports.Name(runtimePackage.Path()) + ".Charge"
	var args []string
	for _, r := range w.method.Rules {
		if r.When == nil {
			args = append(args, w.charge(r, charge))
			continue
		}
		name := w.Take("charge")
		w.stmts = append(w.stmts, "var "+name+" "+charge)
		condition := w.code(r.When, r, r.Rule.When.Value)
		w.stmts = append(w.stmts, "if "+condition+" {\n"+w.inner(func() string {
			return name + " = " + w.charge(r, charge)
		})+"\n}")
		args = append(args, name)
	}
	return args
}

// inner returns the statements of a block that ends with what last gives. What is computed in it is not seen outside.
func (w *writer) inner(last func() string) string {
	outer := *w
	w.stmts, w.subjects, w.checked = nil, maps.Clone(w.subjects), maps.Clone(w.checked)
	final := last()
	stmts := append(w.stmts, final)
	*w = outer
	return strings.Join(stmts, "\n")
}

// charge writes the literal for one rule.
func (w *writer) charge(r *model.Rule, charge string) string {
	var fields []string
	if s := w.subject(r); s != `""` {
		fields = append(fields, "Key: "+s)
	}
	switch {
	case r.Cost != nil:
		fields = append(fields, "Cost: "+w.code(r.Cost, r, r.Rule.Cost.Expr.Value))
	case r.Rule.Cost.Pos.IsValid():
		fields = append(fields, "Cost: "+strconv.FormatInt(r.Rule.Cost.Int, 10))
	default:
		fields = append(fields, "Cost: 1")
	}
	return charge + "{" + strings.Join(fields, ", ") + "}"
}

// code writes an expression of a rule. If it cannot be computed the method is left with a KeyError.
func (w *writer) code(c *key.Code, r *model.Rule, expr string) string {
	w.fail = func(reason, err string) string {
		fields := []string{"Method: " + quote(w.method.Scope), "Rule: " + quote(r.Limit.Name), "Expr: " + quote(expr)}
		if reason != "" {
			fields = append(fields, "Reason: "+quote(reason))
		}
		if err != "" {
			fields = append(fields, "Err: "+err)
		}
		literal := "&" + w.imports.Name(runtimePackage.Path()) + ".KeyError{" + strings.Join(fields, ", ") + "}"
		return w.failure(w.method, literal)
	}
	return w.render(c)
}

// render adds the statements of c, but for checks that were made before.
func (w *writer) render(c *key.Code) string {
	stmts, value := c.Render(w)
	for _, s := range stmts {
		if m := nilCheck.FindStringSubmatch(s); m != nil && slices.Contains(w.params, m[1]) {
			if w.checked[m[1]] {
				continue
			}
			w.checked[m[1]] = true
		}
		w.stmts = append(w.stmts, s)
	}
	return value
}

// nilCheck is a statement that leaves the method if a variable is nil.
var nilCheck = regexp.MustCompile(`^if ([\pL_][\pL\pN_]*) == nil \{\n\treturn [^\n]*\n\}$`)
