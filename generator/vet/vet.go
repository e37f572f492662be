// Package vet finds directives that are broken and places where a limit is lost. Its [Analyzer] runs wherever analyzers of
// go/analysis do; the command has it as "ratelimit vet", and for "go vet -vettool".
//
// # Directives
//
// What the generator would refuse is reported at the word that is wrong: a directive that cannot be read, that only looks like
// one, that takes effect nowhere, or whose rule or expressions do not fit the method. Where there is one way to repair it, that
// is the suggested fix. The generator's warnings, and what depends on files outside of the build at hand, are left to it.
//
// # Lost limits
//
// A wrapper counts the calls that go through it, and no others. Reported are
//
//   - a limited method that is called on, or taken from, a value or a type that could have been wrapped, on such a value that is
//     converted to the interface, or on a variable or field of the interface that gets no others, where no other package can
//     assign to it;
//   - a function that returns such a value as the interface, so that its callers cannot see that no limit applies, but for the
//     exported ones of a package that does not import package runtime: it has nothing to wrap with, and leaves it to them;
//   - a constructor whose name promises the interface, but that returns such a value: the function New of the package with the
//     wrapper, or NewSender where the interface is Sender.
//
// A type counts as one that could have been wrapped if it implements a wrapped interface, of a generic one some instance, of its
// own package or of one that its package imports, or if the package at hand passes a value of it to the constructor of a wrapper.
// Types that hold a value of the interface, however deep, or a func like one of its limited methods are decorators, whose inner
// value may well be wrapped. Tests are left alone, and so are the methods and constructors of the types that implement the
// interface, and of what these consist of; functions that their package hands on as values, unexported ones that return what it
// wraps, and methods that no rule covers.
//
// Not seen are values that reach the interface as an argument, or a type parameter as a type argument, or in a list or map, since
// what gets them may wrap them; types with type parameters of their own or inside of functions; and what is generated for structs
// and funcs, whose callers have the wrapped value at hand by design.
//
// # What is meant
//
// A call that is not to be counted is best made by a method of the type itself, whose name says so:
//
//	// SendUncounted is for operators: their messages do not count.
//	func (g *Gateway) SendUncounted(ctx context.Context, text string) error { return g.Send(ctx, text) }
//
// No comment silences a report, as none does with go vet. Runners of analyzers that have such comments apply them to this one,
// which is called ratelimit.
package vet

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/ratelimit-go/ratelimit/generator/internal/load"
)

// Analyzer reports broken directives and lost limits.
var Analyzer = &analysis.Analyzer{
	Name:      "ratelimit",
	Doc:       "report broken //ratelimit: directives, and calls that their limits do not reach",
	URL:       "https://pkg.go.dev/github.com/ratelimit-go/ratelimit/generator/vet",
	Run:       run,
	FactTypes: []analysis.Fact{new(isWrapper), new(isBare)},
}

func run(pass *analysis.Pass) (any, error) {
	c := &checker{
		Pass: pass, bare: map[*types.TypeName][]limits{}, inside: map[*types.TypeName][]limits{},
		returns: map[*types.Func]bool{}, assigned: map[*types.Var][]assigned{}, free: map[*types.Var]bool{},
		held: map[*types.Var]*types.TypeName{}, parts: map[*types.TypeName][]types.Type{},
	}
	var sources []*ast.File // but for what is generated and for tests
	for _, f := range pass.Files {
		if load.IsGenerated(f) {
			c.declareWrappers(f)
			continue
		}
		if !strings.HasSuffix(pass.Fset.File(f.FileStart).Name(), "_test.go") {
			sources = append(sources, f)
		}
	}
	c.directives()
	c.findComposed(sources)
	if wrappers := c.wrappers(); len(wrappers) > 0 {
		c.findBare(wrappers)
		c.findAssigned(sources)
	}
	for _, f := range sources {
		for _, d := range f.Decls {
			c.calls(d, nil)
			c.constructor(d)
		}
	}
	return nil, nil
}

// checker checks one package.
type checker struct {
	*analysis.Pass
	bare     map[*types.TypeName][]limits // of the types whose values this package wraps
	inside   map[*types.TypeName][]limits // of the types that implement the interface, also as decorators, or are within those
	composed []limits                     // of the interfaces of which it wraps values, whatever their type
	returns  map[*types.Func]bool         // the functions whose results it wraps, or that others call
	assigned map[*types.Var][]assigned
	free     map[*types.Var]bool              // what may have other values as well
	held     map[*types.Var]*types.TypeName   // what heldBy has found
	parts    map[*types.TypeName][]types.Type // what partsOf has found
}
