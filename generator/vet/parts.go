package vet

import "go/types"

// partsOf returns the type that object declares, and the types of what its values consist of, in the same package.
func (c *checker) partsOf(object *types.TypeName) []types.Type {
	if found, ok := c.parts[object]; ok {
		return found
	}
	seen := map[string]bool{}
	var found []types.Type
	for todo := []types.Type{object.Type()}; len(todo) > 0; {
		t := types.Unalias(todo[0])
		todo = todo[1:]
		if seen[t.String()] {
			continue
		}
		seen[t.String()] = true
		found = append(found, t)
		if named, ok := t.(*types.Named); !ok || named.Obj().Pkg() == object.Pkg() {
			todo = append(todo, elements(t)...)
		}
	}
	c.parts[object] = found
	return found
}

// elements returns the types of the fields or elements of t, or of what it points to.
func elements(t types.Type) []types.Type {
	switch t := t.Underlying().(type) {
	case *types.Struct:
		var all []types.Type
		for f := range t.Fields() {
			all = append(all, f.Type())
		}
		return all
	case interface{ Elem() types.Type }: // pointers, slices, arrays, maps, channels
		return []types.Type{t.Elem()}
	}
	return nil
}
