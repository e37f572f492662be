// Package compile compiles the expressions of rules for each method that they limit, and checks what the rules need of the method.
package compile

import (
	"cmp"
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// Package adds to pkg the code of its expressions.
func Package(pkg *model.Package) (found annotations.Diagnostics) {
	for _, f := range pkg.Files {
		for _, w := range f.Wrappers {
			found = append(found, compileRules(expr.Env{
				From: reach.From{Package: pkg.Types, TypeParams: w.TypeParams}, ImportedAs: pkg.ImportedAs,
			}, w)...)
		}
	}
	return found.Coded("expression")
}

// compileRules compiles the rules of the methods of w. It compiles the rules of the type for each method, as the parameters differ.
func compileRules(env expr.Env, w *model.Wrapper) annotations.Diagnostics {
	var errs annotations.Diagnostics
	var ofType []*covered
	for _, m := range w.Methods {
		setEnv(m, env, w.Kind)
		c := &compiler{env: m.Env, method: m, ofTypes: &ofType}
		var rules []*model.Rule
		for _, r := range m.Rules {
			if compiled := c.rule(*r); !r.Bad {
				rules = append(rules, compiled)
			}
		}
		errs = append(errs, c.errs...)
		m.Rules = rules
		for _, r := range m.Rules {
			if m.DropsMessages() {
				r.Message = nil
			}
		}
	}
	for _, c := range ofType {
		errs = append(errs, c.diagnostic())
	}
	return errs
}

// setEnv sets the names that the expressions of a method may use.
func setEnv(m *model.Method, env expr.Env, kind model.Kind) {
	env.Method, env.Params, env.OwnContext = m.Scope, m.Params, m.OwnContext
	switch {
	case m.Receiver == nil:
	case kind == model.Guard:
		env.Absent = m.Receiver.Name
	default:
		env.Receiver = *m.Receiver
	}
	m.Env = &env
}

// covered is an error in a rule of a type, with the methods that it occurs in.
type covered struct {
	annotations.Diagnostic
	methods []string
}

// instead says what to do about a rule of a type that does not fit all of its methods.
const instead = "; put //ratelimit:skip on the methods that the rule is not for, or the rule on the methods that it is for"

// diagnostic returns one error that names all methods.
func (c *covered) diagnostic() annotations.Diagnostic {
	err, methods := c.Diagnostic, strings.Join(c.methods, ", ")
	switch name := err.Unknown.Name; name {
	case "":
		err.Msg += fmt.Sprintf(" (in %s, which this rule covers)", methods)
	case "ctx": // no other value can take the place of a context
		err.Msg = fmt.Sprintf("unknown name ctx in %s, which this rule covers%s", methods, instead)
	default:
		err.Msg = fmt.Sprintf("unknown name %s in %s, which this rule covers%s", name, methods, cmp.Or(err.Unknown.Suggestion, instead))
	}
	return err
}

// compiler compiles the rules of one method.
type compiler struct {
	env     *expr.Env
	method  *model.Method
	ofType  bool        // the current rule stands on the type
	ofTypes *[]*covered // the errors in the rules of the type
	errs    annotations.Diagnostics
}

// rule returns r with its code.
func (c *compiler) rule(r model.Rule) *model.Rule {
	c.ofType = r.OfType
	if e := r.Rule.When; !e.IsZero() {
		r.When = c.expr(e, c.env, expr.Bool)
	}
	if r.When != nil && r.When.Constant == false {
		c.report(annotations.Diagnostic{Pos: r.Rule.When.Pos, Msg: "when: this is never true, so the rule never applies"})
	}
	if r.When != nil && r.When.Constant == true && r.When.Spelled {
		r.When = nil
	}
	r.Subject = c.key(r.Key)
	if r.Declared.Message == "" {
		r.Message = c.template(r.Rule.Message, expr.Message)
	}
	r.Member = c.key(r.Rule.Distinct)
	if e := r.Limit.Expr; !e.IsZero() {
		r.Permits = c.expr(e, c.env, expr.Limit)
		r = withConstantLimit(r)
	}
	if e := r.Rule.Cost.Expr; !e.IsZero() {
		r.Cost = c.expr(e, c.env, expr.Cost)
	}
	if e := r.Rule.Anchor; !e.IsZero() {
		r.Anchor = c.expr(e, c.env, expr.Moment)
	}
	if arg, waits := r.Arg("wait"); waits && c.method.Context < 0 && c.method.OwnContext == nil {
		c.report(annotations.Diagnostic{Pos: arg.Value.Pos, Code: "declaration", Msg: "wait: a call has no context that could end the wait; " +
			"add a parameter of type context.Context, or one with a method Context() context.Context"})
	}
	after := *c.env
	after.Results = c.method.Results
	if e := r.Rule.Settle; !e.IsZero() {
		r.Settle = c.expr(e, &after, expr.Cost)
	}
	if e := r.Rule.Pause; !e.IsZero() {
		r.Pause = c.expr(e, &after, expr.Duration)
	}
	return &r
}

// withConstantLimit makes a constant expression the rule's own limit.
func withConstantLimit(r model.Rule) model.Rule {
	if r.Permits == nil {
		return r
	}
	if n, ok := r.Permits.Constant.(int); ok {
		r.Permits, r.Declared.Limit, r.Declared.Computed, r.Declared.Amounts = nil, int64(n), false, false
	}
	return r
}

// key compiles the template of a key. It reports a $ or # before an expression, as other languages write them.
func (c *compiler) key(t annotations.Template) []model.Piece {
	for i, p := range t.Parts {
		if i+1 < len(t.Parts) && !t.Parts[i+1].Island.IsZero() && (strings.HasSuffix(p.Literal, "$") || strings.HasSuffix(p.Literal, "#")) {
			island := t.Parts[i+1].Island
			sign := p.Literal[len(p.Literal)-1:]
			c.report(annotations.Diagnostic{Pos: island.Pos, Msg: fmt.Sprintf("an expression needs only braces: write {%s} without the %s",
				strings.TrimPrefix(island.Value, "#"), sign)})
			return []model.Piece{{Expr: island.Value, Code: broken(island)}}
		}
	}
	return c.template(t, expr.Island)
}

// broken stands for the code of an expression with an error. Its text differs from those of all other expressions.
func broken(e annotations.Expr) *expr.Code { return &expr.Code{Text: fmt.Sprint(e.Pos)} }

func (c *compiler) template(t annotations.Template, want expr.Want) []model.Piece {
	var pieces []model.Piece
	for _, p := range t.Parts {
		if p.Island.IsZero() {
			pieces = append(pieces, model.Piece{Literal: p.Literal})
		} else {
			pieces = append(pieces, model.Piece{Expr: p.Island.Value, Code: cmp.Or(c.expr(p.Island, c.env, want), broken(p.Island))})
		}
	}
	return pieces
}

func (c *compiler) expr(e annotations.Expr, env *expr.Env, want expr.Want) *expr.Code {
	code, errs := expr.Compile(e, env, want)
	for _, err := range errs {
		c.report(err)
	}
	if code != nil {
		c.hidden(e, code)
	}
	return code
}

// report adds an error. It collects the errors of a rule of the type, which may occur in some methods only.
func (c *compiler) report(err annotations.Diagnostic) {
	if !c.ofType {
		c.errs = append(c.errs, err)
		return
	}
	if name := err.Unknown.Name; name != "" {
		err.Msg = "" // it lists the parameters, which differ between methods
	}
	i := slices.IndexFunc(*c.ofTypes, func(o *covered) bool { return o.Diagnostic == err })
	if i < 0 {
		i, *c.ofTypes = len(*c.ofTypes), append(*c.ofTypes, &covered{Diagnostic: err})
	}
	(*c.ofTypes)[i].methods = append((*c.ofTypes)[i].methods, c.method.Name)
}

// hidden reports a predeclared name that code needs, but that the package or a type parameter redefines, unless the expression
// itself means the redefined one.
func (c *compiler) hidden(e annotations.Expr, code *expr.Code) {
	for _, name := range code.Uses {
		_, isType := c.env.Package.Scope().Lookup(name).(*types.TypeName)
		if types.Universe.Lookup(name) != nil && c.env.Redefined(name) && (isType || c.env.Hidden(name) || !strings.Contains(e.Value, name)) {
			c.report(annotations.Diagnostic{Pos: e.Pos, Msg: fmt.Sprintf("this needs Go's own %s, but another one hides it here", name)})
		}
	}
}
