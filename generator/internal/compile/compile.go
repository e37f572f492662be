// Package compile compiles the expressions of rules, each for the methods that it limits.
package compile

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// Package compiles the expressions of a package's rules.
func Package(pkg *model.Package) annotations.Errors {
	var errs annotations.Errors
	for _, f := range pkg.Files {
		for _, w := range f.Wrappers {
			errs = append(errs, compileRules(pkg.Types, w.Methods)...)
		}
	}
	return errs
}

// compileRules compiles the rules of a type's methods. Those of the type are compiled for each method, whose parameters differ.
func compileRules(pkg *types.Package, methods []*model.Method) annotations.Errors {
	var errs annotations.Errors
	spared, applied := map[token.Pos]bool{}, map[token.Pos]bool{} // by the position of a condition
	for _, m := range methods {
		c := &compiler{env: &expr.Env{Package: pkg, Method: m.Scope, Params: m.Names()}, method: m.Name}
		for i, r := range m.Rules {
			m.Rules[i] = c.rule(*r)
			spared[r.Rule.When.Pos] = spared[r.Rule.When.Pos] || m.Rules[i] == nil
			applied[r.Rule.When.Pos] = applied[r.Rule.When.Pos] || m.Rules[i] != nil
		}
		errs = append(errs, c.errs...)
		m.Rules = slices.DeleteFunc(m.Rules, func(r *model.Rule) bool { return r == nil || r.Bad })
		if f := m.Fallback; f != nil && !f.TakesErr && (!f.MayBeNil || m.Error < 0) {
			for _, r := range m.Rules {
				r.Message = nil // which nobody would be told
			}
		}
	}
	for pos := range spared {
		if !applied[pos] {
			errs = append(errs, annotations.Error{Pos: pos, Msg: "when: this is never true, so that the rule never applies"})
		}
	}
	return errs
}

// compiler compiles the rules of one method.
type compiler struct {
	env    *expr.Env
	method string
	ofType bool // the rule stands on the type
	errs   annotations.Errors
}

// rule returns r with its code, or nil if it is a type's whose condition is known to spare the method, as that it has a
// certain parameter may.
func (c *compiler) rule(r model.Rule) *model.Rule {
	c.ofType = r.OfType
	if e := r.Rule.When; !e.IsZero() {
		r.When = c.expr(e, expr.Bool)
	}
	if applies, known := r.When.Constant().(bool); known && r.OfType {
		if !applies {
			return nil
		}
		r.When = nil
	}
	r.Subject = c.template(r.Key)
	if r.Limit.Message == "" {
		r.Message = c.template(r.Rule.Message)
	}
	r.Member = c.template(r.Rule.Distinct)
	if e := r.Rule.Limit.Expr; !e.IsZero() {
		r.Permits = c.expr(e, expr.Int)
	}
	if e := r.Rule.Cost.Expr; !e.IsZero() {
		r.Cost = c.expr(e, expr.Int)
	}
	return &r
}

func (c *compiler) template(t annotations.Template) []model.Piece {
	var pieces []model.Piece
	for _, p := range t.Parts {
		if p.Island.IsZero() {
			pieces = append(pieces, model.Piece{Literal: p.Literal})
		} else {
			pieces = append(pieces, model.Piece{Expr: p.Island.Value, Code: c.expr(p.Island, expr.Island)})
		}
	}
	return pieces
}

// expr compiles an expression. What is wrong with it in a rule of a type may be right for the type's other methods.
func (c *compiler) expr(e annotations.Expr, want expr.Want) *expr.Code {
	code, errs := expr.Compile(e, c.env, want)
	for _, err := range errs {
		if c.ofType {
			err.Msg += fmt.Sprintf(" (in method %s, which this rule covers)", c.method)
		}
		c.errs = append(c.errs, err)
	}
	if code != nil {
		c.hidden(e, code)
	}
	return code
}

// hidden reports a predeclared name that the package gives another meaning, unless the expression is about that one.
func (c *compiler) hidden(e annotations.Expr, code *expr.Code) {
	for _, name := range code.Uses {
		declared := c.env.Package.Scope().Lookup(name)
		_, isType := declared.(*types.TypeName)
		if types.Universe.Lookup(name) != nil && declared != nil && (isType || !strings.Contains(e.Value, name)) {
			c.errs.Add(e.Pos, "this needs Go's own %s, but the package declares another one", name)
		}
	}
}
