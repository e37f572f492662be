// Package bypass finds programs that use a limited type without its generated wrapper, so that its limits do not apply.
//
// The [Analyzer] looks at package main and at packages that call a generated constructor, because these put a program
// together. It reports
//
//   - a concrete value that becomes a value of an annotated interface: as an argument, a result, an element or a field, by an
//     assignment, by a conversion or on a channel;
//   - what a function of another package returns as an annotated interface, if all that it returns are concrete values;
//   - a limited method of an annotated struct of another package that is called on the bare struct, taken from it as a func, or
//     made a method of an interface value;
//   - a wrapper that is wrapped again, which takes two permits for each call;
//   - a limited method that a method of an annotated struct, or of an implementation of an annotated interface, uses on its receiver;
//   - the method Unlimited of a wrapper, which returns what it wraps;
//   - in the package of a guarded type, a limited method that does not begin with a call of its guard, or drops what it returns.
//
// It does not report
//
//   - values that reach a generated constructor, directly or by way of variables, fields, parameters and results;
//   - decorators: types that hold a value which may be the wrapper, such as a field of the interface type;
//   - results of methods that a wrapper calls, and arguments of functions that these methods get: the wrapper limits them;
//   - tests, and the package that declares the interface, unless that is package main;
//   - a line that ends with //ratelimit:bare and a reason.
//
// There is no other flow analysis. docs/vet.md lists the cases that it misses. Package directive reports broken directives.
package bypass

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/inspector"

	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// Analyzer reports the use of limited types without their wrappers.
var Analyzer = &analysis.Analyzer{
	Name:      "ratelimitbypass",
	Doc:       "report limited types that are used without their generated wrappers",
	URL:       "https://pkg.go.dev/github.com/ratelimit-go/ratelimit/generator/vet/bypass",
	Run:       run,
	FactTypes: []analysis.Fact{new(isLimited), new(isWrapped), new(isFactory)},
}

func run(pass *analysis.Pass) (any, error) {
	c := &checker{
		Pass: pass, limited: map[*types.TypeName]*limited{},
		guards: map[*types.TypeName]*types.TypeName{}, factories: map[*types.Func]bool{}, constructors: map[*types.Func]*limited{}, wrappers: map[*types.TypeName]*types.TypeName{},
	}
	c.excused = source.Excused(c.Fset, c.Files)
	c.checkGuards()
	c.declareConstructors()
	if c.importFacts(); len(c.limited) > 0 {
		root := inspector.New(c.sources()).Root()
		c.origins = c.originsIn(root)
		c.exempt = c.findWrapped()
		checks := pass.Pkg.Name() == "main" || c.composes(root)
		if checks {
			c.check(root)
		}
		c.declareFactories(root, checks)
		c.checkSelfCalls(root)
		c.checkUnlimited(root)
	}
	c.report()
	return nil, nil
}

// checker checks one package.
type checker struct {
	*analysis.Pass
	limited      map[*types.TypeName]*limited
	constructors map[*types.Func]*limited
	wrappers     map[*types.TypeName]*types.TypeName // to the annotated types
	guards       map[*types.TypeName]*types.TypeName // by the guarded types of this package
	wrapped      []*types.Var                        // parameters and fields whose values reach a generated constructor, according to facts
	wrapping     []*types.Func                       // functions that return middleware which wraps, according to facts
	factories    map[*types.Func]bool                // of other packages, according to facts
	excused      func(token.Pos) bool
	origins      *origins
	exempt       []ast.Node
	found        []analysis.Diagnostic
}

// sources returns the files that are neither generated nor tests.
func (c *checker) sources() []*ast.File {
	return slices.DeleteFunc(slices.Clone(c.Files), func(f *ast.File) bool {
		return source.IsGenerated(f) || strings.HasSuffix(c.Fset.File(f.FileStart).Name(), "_test.go")
	})
}

// composes reports whether the package calls a generated constructor.
func (c *checker) composes(root inspector.Cursor) bool {
	for at := range root.Preorder((*ast.CallExpr)(nil)) {
		if c.constructors[c.callee(at.Node().(*ast.CallExpr))] != nil {
			return true
		}
	}
	return false
}

func (c *checker) check(root inspector.Cursor) {
	for at := range root.Preorder() {
		for _, t := range c.transfers(at) {
			c.checkConversion(at, t)
			c.checkFactory(t)
		}
		switch n := at.Node().(type) {
		case *ast.SelectorExpr:
			c.checkMethod(at, n)
		case *ast.CallExpr:
			c.checkTwice(n)
		}
	}
}

// checkConversion reports a bare value that becomes a value of an interface.
func (c *checker) checkConversion(at inspector.Cursor, t transfer) {
	if t.from == nil || t.to == nil || types.IsInterface(t.from) || !types.IsInterface(t.to) {
		return
	}
	l := c.missing(at, t)
	if l == nil {
		return
	}
	c.add(t.value, "%s is used as %s without its rate limits; wrap it with %s",
		c.name(t.from), c.name(t.to), c.nameOf(l))
}

// missing returns the limits that are lost if a value becomes a value of an interface, or nil.
func (c *checker) missing(at inspector.Cursor, t transfer) *limited {
	for m := range t.to.Underlying().(*types.Interface).Methods() {
		object, _, _ := types.LookupFieldOrMethod(t.from, true, m.Pkg(), m.Name())
		if fn, ok := object.(*types.Func); ok {
			if l := c.ofStruct(at, fn); l != nil {
				return l
			}
		}
	}
	l := c.limited[source.TypeName(t.to)]
	isWrapper := c.wrappers[source.TypeName(t.from)] != nil
	if l == nil || c.isOwn(l) || isWrapper || t.from == types.Typ[types.UntypedNil] || c.handsOut(at, t, l) || c.decorates(t.value, t.from, l) {
		return nil
	}
	return l
}

// handsOut reports whether a method that a wrapper calls hands out a value, as a result or to a function that it got. The wrapper limits it
// if the type of the wrapper is of the same package as that with the limits l.
func (c *checker) handsOut(at inspector.Cursor, t transfer, l *limited) bool {
	for around := range at.Enclosing((*ast.FuncDecl)(nil)) {
		fn := c.TypesInfo.Defs[around.Node().(*ast.FuncDecl).Name].(*types.Func)
		v, _ := t.owner.(*types.Var)
		out := t.owner == fn || v != nil && slices.Contains(variables(fn.Signature().Results()), v)
		if call, ok := at.Node().(*ast.CallExpr); ok {
			param, _ := c.variable(call.Fun).(*types.Var)
			out = slices.Contains(variables(fn.Signature().Params()), param)
		}
		return out && c.isWrapped(fn, l.annotated.Pkg())
	}
	return false
}

// isWrapped reports whether a method belongs to an annotated struct of a package, or to an implementation of an annotated interface of that
// package that has it.
func (c *checker) isWrapped(fn *types.Func, pkg *types.Package) bool {
	recv := fn.Signature().Recv()
	if recv == nil {
		return false
	}
	for annotated, l := range c.limited {
		if annotated.Pkg() != pkg {
			continue
		}
		i, ok := annotated.Type().Underlying().(*types.Interface)
		has := ok && types.NewMethodSet(i).Lookup(fn.Pkg(), fn.Name()) != nil
		if has && types.Implements(recv.Type(), i) || source.TypeName(recv.Type()) == annotated && l.covers(fn.Name()) {
			return true
		}
	}
	return false
}

// isOwn reports whether a package that is not main declares the type itself, and so may use it bare.
func (c *checker) isOwn(l *limited) bool { return l.annotated.Pkg() == c.Pkg && c.Pkg.Name() != "main" }

// checkMethod reports a limited method that is called on a bare struct, or taken from it.
func (c *checker) checkMethod(at inspector.Cursor, e *ast.SelectorExpr) {
	s := c.TypesInfo.Selections[e]
	if s == nil || s.Kind() == types.FieldVal {
		return
	}
	if l := c.limited[source.TypeName(s.Recv())]; l != nil && l.covers(e.Sel.Name) {
		c.checkFactory(transfer{e.X, s.Recv(), target{to: s.Recv()}})
	}
	if l := c.ofStruct(at, s.Obj().(*types.Func)); l != nil {
		c.add(e.Sel, "%s of %s is used without its rate limits; use what %s returns",
			e.Sel.Name, c.name(s.Recv()), c.nameOf(l))
	}
}

// ofStruct returns the limits of a method of an annotated struct, or nil for any other method. The methods of the struct itself may use it
// bare.
func (c *checker) ofStruct(at inspector.Cursor, method *types.Func) *limited {
	recv := method.Signature().Recv()
	l := c.limited[source.TypeName(recv.Type())]
	if l == nil || types.IsInterface(recv.Type()) || c.isOwn(l) || !l.covers(method.Name()) {
		return nil
	}
	for around := range at.Enclosing((*ast.FuncDecl)(nil)) {
		fn := c.TypesInfo.Defs[around.Node().(*ast.FuncDecl).Name].(*types.Func)
		if recv := fn.Signature().Recv(); recv != nil && source.TypeName(recv.Type()) == l.annotated {
			return nil
		}
	}
	return l
}

// checkTwice reports a generated constructor whose argument is already the wrapper that it returns.
func (c *checker) checkTwice(call *ast.CallExpr) {
	l := c.constructors[c.callee(call)]
	if l == nil || len(call.Args) == 0 {
		return
	}
	arg := c.unconverted(call.Args[0])
	inner, ok := arg.(*ast.CallExpr)
	if l.wrapper != nil && source.TypeName(c.TypesInfo.TypeOf(arg)) == l.wrapper || ok && c.constructors[c.callee(inner)] == l {
		c.addAnyway(arg, "this is limited already; a second %s takes the permits of each call twice", c.nameOf(l))
	}
}

// unconverted returns the operand of e if e is a conversion, and otherwise e.
func (c *checker) unconverted(e ast.Expr) ast.Expr {
	e = ast.Unparen(e)
	if call, ok := e.(*ast.CallExpr); ok && c.TypesInfo.Types[call.Fun].IsType() {
		return c.unconverted(call.Args[0])
	}
	return e
}

// add adds a finding, unless it is part of an expression whose value reaches a generated constructor.
func (c *checker) add(at ast.Node, format string, args ...any) {
	isPart := func(n ast.Node) bool { return n.Pos() <= at.Pos() && at.End() <= n.End() }
	if !slices.ContainsFunc(c.exempt, isPart) {
		c.addAnyway(at, format, args...)
	}
}

// addAnyway adds a finding.
func (c *checker) addAnyway(at ast.Node, format string, args ...any) {
	c.found = append(c.found, analysis.Diagnostic{Pos: at.Pos(), End: at.End(), Message: fmt.Sprintf(format, args...)})
}

// report reports the findings in source order, except those on excused lines.
func (c *checker) report() {
	slices.SortStableFunc(c.found, func(a, b analysis.Diagnostic) int { return cmp.Compare(a.Pos, b.Pos) })
	for _, d := range c.found {
		if !c.excused(d.Pos) {
			c.Report(d)
		}
	}
}
