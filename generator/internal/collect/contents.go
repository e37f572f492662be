package collect

import "go/types"

// contents looks for annotated types in the types that a type consists of. It does not look into the structs and interfaces of other packages: of
// these it knows their type arguments, and whether they have wrappers there.
type contents struct {
	*annotated
	pkg  *types.Package
	seen map[content]bool
}

// content is a type of values that go out, from an implementation to its callers, or in.
type content struct {
	of  types.Type
	out bool
}

// handsOut reports whether a value of type t that goes out or in hands out a value of an annotated type. What a func gets goes the other
// way than the func.
func (c *contents) handsOut(t types.Type, out bool) bool {
	t = types.Unalias(t)
	if c.seen[content{t, out}] {
		return false
	}
	c.seen[content{t, out}] = true
	if c.limited(t) != nil {
		return out
	}
	switch t := t.(type) {
	case *types.Named:
		isOwn := t.Obj().Pkg() == c.pkg
		return c.some(t.TypeArgs().Len(), t.TypeArgs().At, out) ||
			(isOwn || !hasMembers(t)) && c.handsOut(t.Underlying(), out) ||
			!isOwn && out && c.isLimitedElsewhere(t.Obj())
	case *types.TypeParam:
		return c.handsOut(t.Constraint(), out)
	case *types.Map:
		return c.handsOut(t.Key(), out) || c.handsOut(t.Elem(), out)
	case *types.Chan:
		sends := t.Dir() == types.SendRecv || out == (t.Dir() == types.RecvOnly) // to the caller
		return sends && c.handsOut(t.Elem(), true)
	case *types.Pointer: // to a variable of the caller, if it goes in
		return c.handsOut(t.Elem(), out || c.limited(t.Elem()) != nil)
	case interface{ Elem() types.Type }: // a slice, an array
		return c.handsOut(t.Elem(), out)
	case *types.Signature:
		return c.some(t.Params().Len(), func(i int) types.Type { return t.Params().At(i).Type() }, !out) ||
			c.some(t.Results().Len(), func(i int) types.Type { return t.Results().At(i).Type() }, out)
	case *types.Struct:
		for f := range t.Fields() {
			if (f.Exported() || f.Embedded()) && c.handsOut(f.Type(), out) {
				return true
			}
		}
	case *types.Union:
		return c.some(t.Len(), func(i int) types.Type { return t.Term(i).Type() }, out)
	case *types.Interface:
		return c.some(t.NumEmbeddeds(), t.EmbeddedType, out) ||
			c.some(t.NumExplicitMethods(), func(i int) types.Type { return t.ExplicitMethod(i).Type() }, out)
	}
	return false
}

// hasMembers reports whether t is a struct or an interface.
func hasMembers(t types.Type) bool {
	_, isStruct := t.Underlying().(*types.Struct)
	return isStruct || types.IsInterface(t)
}

func (c *contents) some(n int, at func(int) types.Type, out bool) bool {
	for i := range n {
		if c.handsOut(at(i), out) {
			return true
		}
	}
	return false
}
