package expr

import (
	"go/types"
	"slices"
)

// under is what t is made of. For a type parameter that is what all the types are made of that it may stand for, or else
// its constraint.
func under(t types.Type) types.Type {
	if isTypeParam(t) {
		listed, _ := typeSet(t)
		other := func(o types.Type) bool { return !types.Identical(o.Underlying(), listed[0].Underlying()) }
		if len(listed) > 0 && !slices.ContainsFunc(listed, other) {
			return listed[0].Underlying()
		}
	}
	return t.Underlying()
}

// typeSet returns the types that a constraint or one of its terms lists, or that it lists none and so admits all. What has a
// tilde counts as what it is made of.
func typeSet(t types.Type) (listed []types.Type, all bool) {
	switch u := t.Underlying().(type) {
	case *types.Union:
		for term := range u.Terms() {
			some, every := typeSet(term.Type())
			listed, all = append(listed, some...), all || every
		}
		return listed, all
	case *types.Interface:
		all = true
		for e := range u.EmbeddedTypes() {
			switch some, every := typeSet(e); {
			case every:
			case all:
				listed, all = some, false
			default:
				listed = slices.DeleteFunc(listed, func(t types.Type) bool {
					return !slices.ContainsFunc(some, func(o types.Type) bool { return types.Identical(t.Underlying(), o.Underlying()) })
				})
			}
		}
		return listed, all
	}
	return []types.Type{t}, false
}

// concrete is t, or if that is a type parameter for one type alone, that type.
func concrete(t types.Type) types.Type {
	if listed, _ := typeSet(t); isTypeParam(t) && len(listed) == 1 {
		return listed[0]
	}
	return t
}

// concrete is t as what has the member of that name: of a type parameter Go sees no field, nor a method that its constraint
// does not list.
func (c *compiler) concrete(t *term, member string) *term {
	to := concrete(t.typ)
	if known, _, _ := types.LookupFieldOrMethod(t.typ, true, c.env.Package, member); known != nil || to == t.typ || !c.nameable(to) {
		return t
	}
	v := converted(t, to)
	v.try = t.try
	return v
}

// can reports whether a value of type t may be of one of the kinds.
func can(t types.Type, be kinds) bool { return !isTypeParam(t) || kindsOf(t)&be != 0 }

// kinds are a set of types.BasicKind.
type kinds uint32

const (
	texts    kinds = 1 << types.String
	truths   kinds = 1 << types.Bool
	signed   kinds = 1<<types.Int | 1<<types.Int8 | 1<<types.Int16 | 1<<types.Int32 | 1<<types.Int64
	unsigned kinds = 1<<types.Uint | 1<<types.Uint8 | 1<<types.Uint16 | 1<<types.Uint32 | 1<<types.Uint64 | 1<<types.Uintptr
	others   kinds = 1 // of all other types
)

// kindsOf returns the kinds of the types that a constraint, or one of its terms, admits.
func kindsOf(t types.Type) kinds {
	switch u := t.Underlying().(type) {
	case *types.Basic:
		if k := kinds(1) << u.Kind(); k&(texts|truths|signed|unsigned) != 0 {
			return k
		}
	case *types.Union:
		var found kinds
		for term := range u.Terms() {
			found |= kindsOf(term.Type())
		}
		return found
	case *types.Interface:
		found := texts | truths | signed | unsigned | others
		for e := range u.EmbeddedTypes() {
			found &= kindsOf(e)
		}
		return found
	}
	return others
}

// isStable reports whether t is a type parameter that stands for nothing but texts, bools and integers.
func isStable(t types.Type) bool {
	set := kindsOf(t)
	return isTypeParam(t) && set != 0 && set&others == 0
}

// within reports whether all of the kinds are among all.
func (k kinds) within(all kinds) bool { return k&^all == 0 }

// stableParam writes a value whose type isStable.
func stableParam(t *term) *term {
	format := func(fn, to, rest string) *term {
		return t.then(text, func(w *writer, o operand) operand {
			return o.from(w.std("strconv", fn) + "(" + to + "(" + o.text + ")" + rest + ")")
		})
	}
	var v *term
	switch set := kindsOf(t.typ); {
	case set.within(texts):
		return t.asText()
	case set.within(truths):
		v = format("FormatBool", "bool", "")
	case set.within(signed):
		v = format("FormatInt", "int64", ", 10")
	case set.within(unsigned):
		v = format("FormatUint", "uint64", ", 10")
	case set.within(signed | unsigned):
		v = t.then(text, integer)
	default:
		return t.then(text, func(w *writer, o operand) operand { return o.from(w.std("fmt", "Sprint") + "(" + o.text + ")") })
	}
	v.plain = true
	return v
}

// integer writes an integer that may be of a signed or of an unsigned type.
func integer(w *writer, o operand) operand {
	o = w.twice("n", o)
	digits := w.define("digits", o.from(w.std("strconv", "FormatUint")+"(uint64("+o.text+"), 10)"))
	w.add("if " + o.text + " < 0 {" + indented([]string{
		digits.text + " = " + w.std("strconv", "FormatInt") + "(int64(" + o.text + "), 10)",
	}) + "}")
	return digits
}
