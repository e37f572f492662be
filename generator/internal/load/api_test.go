package load

import (
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// TestAPI compares api with the packages themselves.
func TestAPI(t *testing.T) {
	paths := slices.Sorted(maps.Keys(api))
	_, exports := sourceAndExports(t, ".", paths...)
	c := &compilation{dependencies: newDependencies(&loader{}), fset: token.NewFileSet(), assumed: map[string]*types.Package{}}
	for _, path := range paths {
		real, err := exports.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		conf := types.Config{Importer: c, IgnoreFuncBodies: true, Error: func(err error) {
			if !strings.Contains(err.Error(), "missing function body") {
				t.Errorf("%s: %v", path, err)
			}
		}}
		assumed, _ := conf.Check(path, c.fset, []*ast.File{c.parsed(path)}, nil)
		for _, name := range assumed.Scope().Names() {
			if strings.HasPrefix(path, names.Runtime) || token.IsExported(name) {
				sameObject(t, assumed.Scope().Lookup(name), real.Scope().Lookup(name))
			}
		}
	}
}

// sameObject compares a declaration of api with the real one. A type may lack methods, and the fields of a struct if it has none.
func sameObject(t *testing.T, got, want types.Object) {
	t.Helper()
	if want == nil {
		t.Errorf("there is no %s", got)
		return
	}
	typ, ok := got.(*types.TypeName)
	if !ok {
		if g, w := text(got.Type()), text(want.Type()); g != w {
			t.Errorf("%s is %s; expected %s", got.Name(), g, w)
		}
		return
	}
	for m := range types.NewMethodSet(types.NewPointer(typ.Type())).Methods() {
		real, _, _ := types.LookupFieldOrMethod(want.Type(), true, want.Pkg(), m.Obj().Name())
		sameObject(t, m.Obj(), real)
	}
	if s, ok := typ.Type().Underlying().(*types.Struct); ok {
		for f := range s.Fields() {
			real, _, _ := types.LookupFieldOrMethod(want.Type(), true, want.Pkg(), f.Name())
			sameObject(t, f, real)
		}
		return
	}
	if g, w := text(typ.Type().Underlying()), text(want.Type().Underlying()); g != w {
		t.Errorf("%s is %s; expected %s", got.Name(), g, w)
	}
}

// text returns the text of a type.
func text(t types.Type) string { return types.TypeString(t, nil) }
