package expr

import (
	"go/token"
	"go/types"
	"math"
	"slices"
	"strings"
)

// Precedences of operands, beside those of go/token.
const (
	unary   = token.UnaryPrec
	highest = token.HighestPrec
)

func is(t types.Type, info types.BasicInfo) bool {
	b, ok := under(t).(*types.Basic)
	return ok && b.Info()&info != 0 && b.Kind() != types.Uintptr
}

func isInt(t types.Type) bool    { return is(t, types.IsInteger) }
func isNumber(t types.Type) bool { return is(t, types.IsInteger|types.IsFloat) }
func isText(t types.Type) bool   { return is(t, types.IsString) }
func isBool(t types.Type) bool   { return is(t, types.IsBoolean) }
func isNil(t types.Type) bool    { return t == types.Typ[types.UntypedNil] }

// isAny reports whether t is an interface without methods, or a type parameter that may stand for types of several kinds:
// what its values can do is known when they come.
func isAny(t types.Type) bool {
	i, ok := under(t).(*types.Interface)
	if isTypeParam(t) {
		listed, all := typeSet(t)
		return ok && !all && len(listed) > 0 && i.NumMethods() == 0
	}
	return ok && i.Empty()
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
	_, ok := under(t).(*types.Basic)
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
	switch under(t).(type) {
	case *types.Pointer, *types.Map, *types.Slice, *types.Chan, *types.Signature:
		return true
	case *types.Interface:
		if isTypeParam(t) {
			listed, all := typeSet(t)
			return all || slices.ContainsFunc(listed, nilable)
		}
		return true
	}
	return false
}

// pointee returns what t points to, or nil.
func pointee(t types.Type) types.Type {
	if p, ok := under(t).(*types.Pointer); ok {
		return p.Elem()
	}
	return nil
}

// wide reports whether t has values that an int has not: unsigned ones of 64 bits, which expr nevertheless makes ints.
func wide(t types.Type) bool {
	b, ok := under(t).(*types.Basic)
	return ok && (b.Kind() == types.Uint || b.Kind() == types.Uint64)
}

// bits returns the least and the greatest value of an integer type; the greatest of a wide one counts as MaxInt64.
func bits(t types.Type) (least, greatest int64) {
	switch under(t).(*types.Basic).Kind() {
	case types.Int8:
		return math.MinInt8, math.MaxInt8
	case types.Int16:
		return math.MinInt16, math.MaxInt16
	case types.Int32, types.UntypedRune:
		return math.MinInt32, math.MaxInt32
	case types.Uint8:
		return 0, math.MaxUint8
	case types.Uint16:
		return 0, math.MaxUint16
	case types.Uint32:
		return 0, math.MaxUint32
	case types.Uint, types.Uint64:
		return 0, math.MaxInt64
	}
	return math.MinInt64, math.MaxInt64
}

// holds reports whether every value of the integer type from is one of the integer type to. int counts as 64 bits.
func holds(to, from types.Type) bool {
	if wide(from) {
		return wide(to)
	}
	a, b := bits(to)
	x, y := bits(from)
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
			least, greatest := bits(to)
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
	_, dynamic := under(to).(*types.Interface)
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
	switch {
	case isNil(t):
		return name
	case strings.ContainsAny(name[:1], "aeioAEIO"):
		return "an " + name
	}
	return "a " + name
}

// nameable reports whether code of the annotated package can spell t.
func (c *compiler) nameable(t types.Type) bool {
	ok := true
	types.TypeString(t, func(p *types.Package) string { ok = ok && c.importable(p); return "" })
	return ok && c.exported(t)
}

func (c *compiler) importable(p *types.Package) bool {
	before, _, internal := strings.Cut("/"+p.Path()+"/", "/internal/")
	return p == c.env.Package || !internal || strings.HasPrefix("/"+c.env.Package.Path()+"/", before+"/")
}

// exported reports whether the named types that t is made of are exported or the package's own.
func (c *compiler) exported(t types.Type) bool {
	switch t := t.(type) {
	case interface{ Obj() *types.TypeName }:
		o := t.Obj()
		return o.Exported() || o.Pkg() == nil || o.Pkg() == c.env.Package
	case *types.Pointer:
		return c.exported(t.Elem())
	case *types.Slice:
		return c.exported(t.Elem())
	case *types.Array:
		return c.exported(t.Elem())
	case *types.Map:
		return c.exported(t.Key()) && c.exported(t.Elem())
	case *types.Basic, *types.Interface:
		return true
	}
	return false
}
