package expr

import (
	"go/token"
	"go/types"
	"math"
	"slices"

	naming "github.com/ratelimit-go/ratelimit/generator/internal/names"
)

// Precedences of operands, beside those of go/token.
const (
	unary   = token.UnaryPrec
	highest = token.HighestPrec
)

func is(t types.Type, info types.BasicInfo) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && b.Info()&info != 0 && b.Kind() != types.Uintptr
}

func isInt(t types.Type) bool    { return is(t, types.IsInteger) }
func isNumber(t types.Type) bool { return is(t, types.IsInteger|types.IsFloat) }
func isText(t types.Type) bool   { return is(t, types.IsString) }
func isBool(t types.Type) bool   { return is(t, types.IsBoolean) }
func isNil(t types.Type) bool    { return t == types.Typ[types.UntypedNil] }

// isAny reports whether t is an interface without methods, or a type parameter whose constraint has none. Its values are checked
// when a call comes.
func isAny(t types.Type) bool {
	i, ok := t.Underlying().(*types.Interface)
	return ok && (i.Empty() || isTypeParam(t) && i.NumMethods() == 0)
}

// elemOf returns the type of the elements of a slice or an array, or of one that t points to; nil if t is none.
func elemOf(t types.Type) types.Type {
	switch a := aggregate(t).(type) {
	case *types.Slice:
		return a.Elem()
	case *types.Array:
		return a.Elem()
	}
	return nil
}

func isList(t types.Type) bool { return elemOf(t) != nil }
func isTime(t types.Type) bool { return isNamed(t, "time", "Time") }

func isDuration(t types.Type) bool { return isNamed(t, "time", "Duration") }

func isNamed(t types.Type, pkg, name string) bool {
	n, ok := types.Unalias(t).(*types.Named)
	return ok && n.Obj().Name() == name && n.Obj().Pkg() != nil && n.Obj().Pkg().Path() == pkg
}

func isBasic(t types.Type) bool {
	_, ok := t.Underlying().(*types.Basic)
	return ok
}

// hasMethods reports whether values of type t have methods.
func hasMethods(t types.Type) bool { return types.NewMethodSet(t).Len() > 0 }

// hasAddress reports whether what fmt prints of a t may show an address, which is not the same in two calls.
func hasAddress(t types.Type, within ...types.Type) bool {
	if slices.ContainsFunc(within, func(o types.Type) bool { return types.Identical(o, t) }) {
		return true
	}
	within = append(within, t)
	switch u := t.Underlying().(type) {
	case *types.Slice:
		return hasAddress(u.Elem(), within...)
	case *types.Array:
		return hasAddress(u.Elem(), within...)
	case *types.Map:
		return hasAddress(u.Key(), within...) || hasAddress(u.Elem(), within...)
	case *types.Struct:
		for f := range u.Fields() {
			if hasAddress(f.Type(), within...) {
				return true
			}
		}
		return false
	case *types.Basic:
		return u.Kind() == types.Uintptr || u.Kind() == types.UnsafePointer
	case *types.Interface:
		return !u.Empty() && !isTypeParam(t)
	}
	return true
}

func isTypeParam(t types.Type) bool {
	_, ok := types.Unalias(t).(*types.TypeParam)
	return ok
}

// hasTypeParam reports whether t depends on a type parameter. Only a named type or a pointer to one can have members.
func hasTypeParam(t types.Type) bool {
	if elem := pointee(t); elem != nil {
		t = elem
	}
	if n, ok := types.Unalias(t).(*types.Named); ok {
		for arg := range n.TypeArgs().Types() {
			if hasTypeParam(arg) {
				return true
			}
		}
	}
	return isTypeParam(t)
}

// nilable reports whether a value of type t may be nil.
func nilable(t types.Type) bool {
	switch t.Underlying().(type) {
	case *types.Pointer, *types.Map, *types.Slice, *types.Chan, *types.Signature, *types.Interface:
		return true
	}
	return false
}

// pointee returns what t points to, or nil.
func pointee(t types.Type) types.Type {
	if p, ok := t.Underlying().(*types.Pointer); ok {
		return p.Elem()
	}
	return nil
}

// wide reports whether t has values that an int64 has not: unsigned ones of 64 bits.
func wide(t types.Type) bool {
	b, ok := t.Underlying().(*types.Basic)
	return ok && (b.Kind() == types.Uint || b.Kind() == types.Uint64)
}

// limits returns the least and the greatest value of an integer type; the greatest of a wide one counts as MaxInt64. An int has
// word bits.
func limits(t types.Type, word int) (least, greatest int64) {
	size := map[types.BasicKind]int{
		types.Int: word, types.Int8: 8, types.Int16: 16, types.Int32: 32, types.UntypedRune: 32, types.Uint8: 8, types.Uint16: 16, types.Uint32: 32,
	}[t.Underlying().(*types.Basic).Kind()]
	switch {
	case size == 0 || size == 64:
		least, greatest = math.MinInt64, math.MaxInt64
	case is(t, types.IsUnsigned):
		greatest = 1<<size - 1
	default:
		least, greatest = -1<<(size-1), 1<<(size-1)-1
	}
	if wide(t) {
		least = 0
	}
	return least, greatest
}

// holds reports whether every value of the integer type from is one of the integer type to, on 32 bits as on 64.
func holds(to, from types.Type) bool {
	if types.Identical(to.Underlying(), from.Underlying()) {
		return true
	}
	if wide(from) {
		return wide(to) && to.Underlying().(*types.Basic).Kind() == types.Uint64
	}
	a, b := limits(to, 32)
	x, y := limits(from, 64)
	return a <= x && y <= b
}

// fits reports whether a literal can stand where a t is needed.
func (t *term) fits(to types.Type) bool {
	if !t.lit {
		return false
	}
	switch v := t.con.(type) {
	case int:
		if isInt(to) {
			least, greatest := limits(to, 32)
			return least <= int64(v) && int64(v) <= greatest
		}
		return is(to, types.IsFloat)
	case float64:
		return is(to, types.IsFloat)
	case string:
		return isText(to)
	case bool:
		return isBool(to)
	}
	_, dynamic := to.Underlying().(*types.Interface)
	return isNil(t.typ) && nilable(to) && !(dynamic && isTypeParam(to))
}

// typeName spells t for a message.
func (c *compiler) typeName(t types.Type) string {
	if isNil(t) {
		return "nil"
	}
	return types.TypeString(t, func(p *types.Package) string {
		if p == c.env.Package {
			return ""
		}
		return p.Name()
	})
}

// a spells t with its article.
func (c *compiler) a(t types.Type) string {
	name := c.typeName(t)
	if t.Underlying() == types.Typ[types.Invalid] { // type T C.int
		name += " of unknown kind"
	}
	if isNil(t) {
		return name
	}
	return naming.Article(name) + " " + name
}
