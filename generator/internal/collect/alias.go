package collect

import (
	"cmp"
	"go/types"
	"slices"
	"strings"
)

// rewriter replaces the types in a signature by identical types that this package can name. Where it cannot name a type, it uses
// an alias of that type.
type rewriter struct {
	*methods
	reason string // why a type cannot be named, or ""
}

// rewrite returns a type that is identical to t and that this package can name. If there is none, it returns t and sets the
// reason.
func (r *rewriter) rewrite(t types.Type) types.Type {
	if r.from().CanName(t) {
		return t
	}
	if a := r.aliasOf(t); a != nil {
		return a
	}
	reason := r.from().Unnameable(t)
	if reason == "" {
		return r.rebuilt(t)
	}
	if a, ok := t.(*types.Alias); ok {
		return r.rewrite(a.Rhs())
	}
	r.refuse(reason)
	return t
}

// rebuilt returns t with rewritten parts.
func (r *rewriter) rebuilt(t types.Type) types.Type {
	switch t := t.(type) {
	case *types.Alias:
		return r.instance(t.Origin(), t.TypeArgs())
	case *types.Named:
		return r.instance(t.Origin(), t.TypeArgs())
	case *types.Pointer:
		return types.NewPointer(r.rewrite(t.Elem()))
	case *types.Slice:
		return types.NewSlice(r.rewrite(t.Elem()))
	case *types.Array:
		return types.NewArray(r.rewrite(t.Elem()), t.Len())
	case *types.Chan:
		return types.NewChan(t.Dir(), r.rewrite(t.Elem()))
	case *types.Map:
		return types.NewMap(r.rewrite(t.Key()), r.rewrite(t.Elem()))
	case *types.Signature:
		return r.signature(t)
	case *types.Struct:
		return r.structure(t)
	case *types.Interface:
		return r.iface(t)
	}
	return t
}

// refuse sets the reason if there is none yet.
func (r *rewriter) refuse(reason string) {
	r.reason = cmp.Or(r.reason, reason)
}

func (r *rewriter) signature(t *types.Signature) *types.Signature {
	return types.NewSignatureType(nil, nil, nil, r.tuple(t.Params()), r.tuple(t.Results()), t.Variadic())
}

func (r *rewriter) tuple(t *types.Tuple) *types.Tuple {
	var vars []*types.Var
	for v := range t.Variables() {
		vars = append(vars, types.NewParam(v.Pos(), v.Pkg(), v.Name(), r.rewrite(v.Type())))
	}
	return types.NewTuple(vars...)
}

func (r *rewriter) instance(origin types.Type, args *types.TypeList) types.Type {
	var list []types.Type
	for arg := range args.Types() {
		list = append(list, r.rewrite(arg))
	}
	t, _ := types.Instantiate(nil, origin, list, false) // without validation there is no error
	return t
}

// structure rewrites the types of the fields. An embedded field must keep its name, which an alias may change.
func (r *rewriter) structure(t *types.Struct) types.Type {
	var fields []*types.Var
	var tags []string
	for i := range t.NumFields() {
		f := t.Field(i)
		as := r.rewrite(f.Type())
		if f.Embedded() && as != f.Type() && !strings.HasSuffix(types.TypeString(as, nil), "."+f.Name()) {
			r.refuse("a struct that embeds " + types.TypeString(f.Type(), nil) + ", which has no alias of its name")
		}
		fields = append(fields, types.NewField(f.Pos(), f.Pkg(), f.Name(), as, f.Embedded()))
		tags = append(tags, t.Tag(i))
	}
	return types.NewStruct(fields, tags)
}

func (r *rewriter) iface(t *types.Interface) types.Type {
	var own []*types.Func
	for m := range t.ExplicitMethods() {
		own = append(own, types.NewFunc(m.Pos(), m.Pkg(), m.Name(), r.signature(m.Signature())))
	}
	var embedded []types.Type
	for e := range t.EmbeddedTypes() {
		embedded = append(embedded, r.rewrite(e))
	}
	return types.NewInterfaceType(own, embedded).Complete()
}

// aliasOf returns an alias of t that this package can name, or nil.
func (r *rewriter) aliasOf(t types.Type) types.Type {
	for _, path := range r.searched(t) {
		p := r.pkg.Import(path)
		if p == nil {
			continue
		}
		for _, name := range p.Scope().Names() {
			o, ok := p.Scope().Lookup(name).(*types.TypeName)
			if !ok || !o.IsAlias() {
				continue
			}
			if a, ok := o.Type().(*types.Alias); ok && r.usable(a) {
				if found := r.standsFor(a, t); found != nil {
					return found
				}
			}
		}
	}
	return nil
}

// searched returns the paths of the packages that may have an alias of t: this package, the packages that it imports, and the
// package that declares t. If that one is internal, the packages that contain its internal folders follow.
func (r *rewriter) searched(t types.Type) (paths []string) {
	for _, p := range r.pkg.Types.Imports() {
		paths = append(paths, p.Path())
	}
	slices.Sort(paths)
	if named, ok := t.(*types.Named); ok && named.Obj().Pkg() != nil {
		for path := named.Obj().Pkg().Path(); path != ""; path = owner(path) {
			paths = append(paths, path)
		}
	}
	return append([]string{r.pkg.Types.Path()}, paths...)
}

// owner returns the path of the package that contains the last internal folder of path, or "".
func owner(path string) string {
	i := strings.LastIndex(path+"/", "/internal/")
	return path[:max(i, 0)]
}

// usable reports whether the generated file can name the alias a in every build.
func (r *rewriter) usable(a *types.Alias) bool {
	if r.from().Unnameable(a) != "" {
		return false
	}
	if a.Obj().Pkg() != r.pkg.Types {
		return true
	}
	s := r.declared[a.Obj()]
	return s != nil && (s.file == r.home || constraintOf(s.file) == "" && (r.home.IsTest() || !s.file.IsTest()))
}

// standsFor returns the alias a, or an instance of it, if it is identical to t. Otherwise it returns nil.
func (r *rewriter) standsFor(a *types.Alias, t types.Type) types.Type {
	if a.TypeParams().Len() == 0 {
		if types.Identical(a, t) {
			return a
		}
		return nil
	}
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.TypeArgs().Len() != a.TypeParams().Len() {
		return nil
	}
	of, err := types.Instantiate(nil, a, slices.Collect(named.TypeArgs().Types()), true)
	if err != nil || !types.Identical(of, t) {
		return nil
	}
	return r.instance(a, named.TypeArgs())
}
