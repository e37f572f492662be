package generator

import (
	"fmt"
	"go/types"
	"slices"
	"strings"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/key"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
)

// compile compiles the expressions of a package's rules. The rules of a type are compiled for each of its methods, whose
// parameters differ.
func compile(pkg *model.Package) annotations.Errors {
	var errs annotations.Errors
	for m := range pkg.Methods() {
		c := &compiler{env: &key.Env{Package: pkg.Types, Method: m.Scope, Params: m.Params}, method: m.Name}
		for i, r := range m.Rules {
			m.Rules[i] = c.rule(*r)
			if m.Fallback != nil && !m.Fallback.TakesErr {
				m.Rules[i].Message = nil // which nobody would be told
			}
		}
		errs = append(errs, c.errs...)
		m.Rules = slices.DeleteFunc(m.Rules, func(r *model.Rule) bool { return r.Bad })
	}
	return errs
}

// compiler compiles the rules of one method.
type compiler struct {
	env    *key.Env
	method string
	ofType bool // the rule stands on the type
	errs   annotations.Errors
}

// rule returns r with its code.
func (c *compiler) rule(r model.Rule) *model.Rule {
	c.ofType = r.OfType
	r.Subject = c.template(r.Key)
	if r.Limit.Message == "" {
		r.Message = c.template(r.Rule.Message)
	}
	r.Member = c.template(r.Rule.Distinct)
	if e := r.Rule.Limit.Expr; !e.IsZero() {
		r.Permits = c.expr(e, key.Int)
	}
	if e := r.Rule.When; !e.IsZero() {
		r.When = c.expr(e, key.Bool)
	}
	if e := r.Rule.Cost.Expr; !e.IsZero() {
		r.Cost = c.expr(e, key.Int)
	}
	return &r
}

func (c *compiler) template(t annotations.Template) []model.Piece {
	var pieces []model.Piece
	for _, p := range t.Parts {
		if p.Island.IsZero() {
			pieces = append(pieces, model.Piece{Literal: p.Literal})
		} else {
			pieces = append(pieces, model.Piece{Expr: p.Island.Value, Code: c.expr(p.Island, key.Island)})
		}
	}
	return pieces
}

// expr compiles an expression. What is wrong with it in a rule of a type may be right for the type's other methods.
func (c *compiler) expr(e annotations.Expr, want key.Want) *key.Code {
	code, errs := key.Compile(e, c.env, want)
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
func (c *compiler) hidden(e annotations.Expr, code *key.Code) {
	for _, name := range code.Uses {
		declared := c.env.Package.Scope().Lookup(name)
		_, isType := declared.(*types.TypeName)
		if types.Universe.Lookup(name) != nil && declared != nil && (isType || !strings.Contains(e.Value, name)) {
			c.errs.Add(e.Pos, "this needs Go's own %s, but the package declares another one", name)
		}
	}
}
