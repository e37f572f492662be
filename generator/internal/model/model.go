// Package model holds what the generator knows about annotated types between its stages: data with positions, which
// collect fills, the generator completes with compiled expressions, and emit reads. It has no logic beyond lookups.
package model

import (
	"go/token"
	"go/types"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime"
)

// Package is a package with annotated files.
type Package struct {
	Types  *types.Package
	Module string // the path of its module, "" without one
	Files  []*File
}

// File is an annotated file and the one that is generated from it.
type File struct {
	Source, Output string
	Constraint     string // the expression after //go:build that the output needs, or ""
	Wrappers       []*Wrapper
}

// Wrapper is an annotated interface and what is generated for it.
type Wrapper struct {
	Pos        token.Pos
	Object     *types.TypeName
	Interface  *types.Interface
	TypeParams *types.TypeParamList
	Name, New  string // of the generated type and of its constructor
	Scope      string // pkg.Type, as it stands in the names of rules
	Rules      []*Rule
	Methods    []*Method
}

// Method is a method of an annotated interface.
type Method struct {
	Pos       token.Pos
	Name      string
	Doc       string // without directives
	Signature *types.Signature
	Params    []key.Param // as expressions name them
	Scope     string      // pkg.Type.Method
	Rules     []*Rule     // its own, then its type's
	Context   int         // the index of the context among the parameters, or -1
	Error     int         // the index of the error among the results, or -1

	Skipped bool // a directive says that the rules of the type do not apply
	Spared  bool // the rules of the type do not apply, as the method cannot return an error
}

// Rule is a directive as it applies to one method, or, in a Wrapper, to a type.
type Rule struct {
	annotations.Rule // as written
	Limit            runtime.Rule
	Zone             token.Pos // of the time zone where the rule has it from its type; else invalid
	OfType           bool
	Owner            string // the Scope of what the directive stands on

	// What follows is compiled against the parameters of the method.
	Subject []Piece
	Message []Piece // empty if the message is static
	Cost    *key.Code
	When    *key.Code
}

// Piece is a part of a template: a literal, or an island with its code.
type Piece struct {
	Literal string
	Expr    string // the island as written
	Code    *key.Code
}

// Codes returns all compiled expressions of the rule.
func (r *Rule) Codes() []*key.Code {
	var codes []*key.Code
	for _, p := range append(r.Subject[:len(r.Subject):len(r.Subject)], r.Message...) {
		if p.Code != nil {
			codes = append(codes, p.Code)
		}
	}
	if r.Cost != nil {
		codes = append(codes, r.Cost)
	}
	if r.When != nil {
		codes = append(codes, r.When)
	}
	return codes
}
