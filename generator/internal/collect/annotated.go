package collect

import (
	"go/token"
	"go/types"
	"slices"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/source"
)

// annotated knows which types have wrappers.
type annotated struct {
	fset    *token.FileSet
	of      map[types.Object]*model.Wrapper
	aliases []*model.Wrapper // the wrappers of aliases, in the order of the source
	homes   map[*model.Wrapper]*model.File
	asking  *model.File // the file of the method whose signature is looked at

	elsewhere map[types.Object]bool // whether types of other packages have wrappers
}

func annotatedIn(fset *token.FileSet, files []*model.File) *annotated {
	a := &annotated{fset: fset, elsewhere: map[types.Object]bool{}, of: map[types.Object]*model.Wrapper{}, homes: map[*model.Wrapper]*model.File{}}
	for _, f := range files {
		for _, w := range f.Wrappers {
			a.of[w.Object], a.homes[w] = w, f
			if _, isAlias := w.Object.Type().(*types.Alias); isAlias { // an invalid type is none
				a.aliases = append(a.aliases, w)
			}
		}
	}
	slices.SortFunc(a.aliases, func(x, y *model.Wrapper) int { return int(x.Pos - y.Pos) })
	return a
}

// limited returns the wrapper for values of type t, or nil: t is an annotated type with rules or wrap, another name of it, or a pointer to an annotated
// struct. It returns nil if the wrapper is declared in a test, but the method is not.
func (a *annotated) limited(t types.Type) *model.Limited {
	l := &model.Limited{Value: true}
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t, l.Value = p.Elem(), false
	}
	if l.Wrapper, l.Args = a.wrapper(t); l.Wrapper == nil {
		return nil
	}
	inTest := func(f *model.File) bool { return (&source.File{Path: f.Source}).IsTest() }
	switch {
	case l.Kind == model.Guard, l.Kind != model.Concrete && !l.Value, inTest(a.homes[l.Wrapper]) && !inTest(a.asking):
		return nil
	case len(l.Rules) == 0 && !l.Wrap.IsValid() && !slices.ContainsFunc(l.Methods, func(m *model.Method) bool { return len(m.Rules) > 0 }):
		return nil
	}
	return l
}

// isLimitedElsewhere reports whether a type of another package has a wrapper there.
func (a *annotated) isLimitedElsewhere(o *types.TypeName) bool {
	is, known := a.elsewhere[o]
	if !known {
		is = o.Pkg() != nil && source.IsLimited(a.fset, o)
		a.elsewhere[o] = is
	}
	return is
}

// wrapper returns the wrapper of t and its type arguments. A name with which t is written goes first, then the name that it has, then other
// aliases of it.
func (a *annotated) wrapper(t types.Type) (*model.Wrapper, []types.Type) {
	for written := t; written != nil; {
		named, ok := written.(interface {
			Obj() *types.TypeName
			TypeArgs() *types.TypeList
		})
		if !ok {
			break
		}
		if w := a.of[named.Obj()]; w != nil {
			return w, slices.Collect(named.TypeArgs().Types())
		}
		alias, _ := written.(*types.Alias)
		if alias == nil {
			break
		}
		written = alias.Rhs()
	}
	for _, w := range a.aliases {
		if args, ok := match(w.Object.Type().(*types.Alias), t); ok {
			return w, args
		}
	}
	return nil, nil
}

// match returns the type arguments with which t is an instance of an alias. For an alias without type parameters there are none.
func match(alias *types.Alias, t types.Type) (args []types.Type, ok bool) {
	bound := map[types.Type]types.Type{}
	bind(alias.Rhs(), t, bound)
	for p := range alias.TypeParams().TypeParams() {
		if bound[p] == nil {
			return nil, false
		}
		args = append(args, bound[p])
	}
	if args == nil {
		return nil, types.Identical(alias, t)
	}
	instance, err := types.Instantiate(nil, alias, args, true)
	return args, err == nil && types.Identical(instance, t)
}

// bind notes what the type parameters in pattern stand for if t is an instance of it.
func bind(pattern, t types.Type, bound map[types.Type]types.Type) {
	t = types.Unalias(t)
	switch pattern := types.Unalias(pattern).(type) {
	case *types.TypeParam:
		bound[pattern] = t
	case *types.Named:
		if is, ok := t.(*types.Named); ok && is.Origin() == pattern.Origin() {
			for i := range pattern.TypeArgs().Len() {
				bind(pattern.TypeArgs().At(i), is.TypeArgs().At(i), bound)
			}
		}
	case *types.Map:
		if is, ok := t.(*types.Map); ok {
			bind(pattern.Key(), is.Key(), bound)
			bind(pattern.Elem(), is.Elem(), bound)
		}
	case interface{ Elem() types.Type }: // a pointer, a slice, an array, a channel
		if is, ok := t.(interface{ Elem() types.Type }); ok {
			bind(pattern.Elem(), is.Elem(), bound)
		}
	}
}
