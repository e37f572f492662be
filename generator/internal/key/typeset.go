package key

import "go/types"

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
