package expr

import (
	"cmp"
	"go/token"
	"go/types"
	"math/bits"
	"slices"

	naming "github.com/ratelimit-go/ratelimit/generator/internal/names"
	"github.com/ratelimit-go/ratelimit/generator/internal/reach"
)

// Precedences of operands, in addition to those of go/token.
const (
	unary   = token.UnaryPrec
	highest = token.HighestPrec
)

// under returns the underlying type of t. That of a type parameter is the one of all types that its constraint lists, if they have the same,
// and otherwise its constraint.
func under(t types.Type) types.Type {
	var same types.Type
	for _, of := range typeSet(t) {
		if same != nil && !types.Identical(same, of.Underlying()) {
			return t.Underlying()
		}
		same = of.Underlying()
	}
	return cmp.Or(same, t.Underlying())
}

// typeSet returns the types that the constraint of a type parameter lists. It is empty if t is no type parameter, or may be of any type.
func typeSet(t types.Type) (set []types.Type) {
	if !isTypeParam(t) {
		return nil
	}
	var add func(types.Type)
	add = func(t types.Type) {
		switch of := t.(type) {
		case *types.Union:
			for term := range of.Terms() {
				add(term.Type())
			}
			return
		}
		i, ok := t.Underlying().(*types.Interface)
		if !ok {
			set = append(set, t)
			return
		}
		for of := range i.EmbeddedTypes() {
			add(of)
		}
	}
	add(t.Underlying())
	return set
}

// is reports whether t is a basic type with a property, or a type parameter of such types only.
func is(t types.Type, info types.BasicInfo) bool {
	has := func(t types.Type) bool {
		b, ok := t.Underlying().(*types.Basic)
		return ok && b.Info()&info != 0
	}
	set := typeSet(t)
	return has(t) && t.Underlying() != types.Typ[types.Uintptr] || len(set) > 0 && !slices.ContainsFunc(set, func(t types.Type) bool { return !has(t) })
}

func isInt(t types.Type) bool    { return is(t, types.IsInteger) }
func isFloat(t types.Type) bool  { return is(t, types.IsFloat) }
func isNumber(t types.Type) bool { return is(t, types.IsInteger|types.IsFloat) }
func isText(t types.Type) bool   { return is(t, types.IsString) }
func isBool(t types.Type) bool   { return is(t, types.IsBoolean) }
func isBasic(t types.Type) bool  { return isNumber(t) || isText(t) || isBool(t) }
func isNil(t types.Type) bool    { return t == types.Typ[types.UntypedNil] }

func isBytes(t types.Type) bool {
	s, ok := under(t).(*types.Slice)
	return ok && types.Identical(s.Elem().Underlying(), types.Typ[types.Byte]) && !hasMethods(s.Elem())
}

// isAny reports whether t is an interface without methods, or a type parameter whose types have nothing in common. Little is known of its
// values when generating.
func isAny(t types.Type) bool {
	if i, ok := under(t).(*types.Interface); ok && !is(t, types.IsOrdered|types.IsBoolean) {
		return i.NumMethods() == 0
	}
	return false
}

// elemOf returns the type of the elements if t is a slice, an array, or a pointer to one, and otherwise nil.
func elemOf(t types.Type) types.Type {
	switch a := aggregate(t).(type) {
	case *types.Slice:
		return a.Elem()
	case *types.Array:
		return a.Elem()
	}
	return nil
}

// itemOf returns the type of the elements of a list or a map.
func itemOf(t types.Type) types.Type {
	if m, ok := aggregate(t).(*types.Map); ok {
		return m.Elem()
	}
	return elemOf(t)
}

func isList(t types.Type) bool { return elemOf(t) != nil }
func isTime(t types.Type) bool { return reach.IsNamed(t, "time", "Time") }

func isStruct(t types.Type) bool {
	_, ok := under(t).(*types.Struct)
	return ok
}

func isMap(t types.Type) bool {
	_, ok := under(t).(*types.Map)
	return ok
}

func isDuration(t types.Type) bool { return reach.IsNamed(t, "time", "Duration") }

// hasMethods reports whether values of type t have methods.
func hasMethods(t types.Type) bool { return types.NewMethodSet(t).Len() > 0 }

// hasAddress reports whether fmt may print an address for a value of type t, which would differ from call to call.
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

// nilable reports whether a value of type t may be nil.
func nilable(t types.Type) bool {
	switch under(t).(type) {
	case *types.Pointer, *types.Map, *types.Slice, *types.Chan, *types.Signature:
		return true
	case *types.Interface:
		return !is(t, types.IsOrdered|types.IsBoolean)
	}
	return false
}

// pointee returns the type that t points to, or nil.
func pointee(t types.Type) types.Type {
	if p, ok := under(t).(*types.Pointer); ok {
		return p.Elem()
	}
	return nil
}

// wide reports whether t has values that do not fit in an int64, as unsigned integers of 64 bits have.
func wide(t types.Type) bool { return isInt(t) && !holds(types.Typ[types.Int64], t) }

// narrow and full are the sizes of types on 32 bits and on 64 bits.
var narrow, full = types.SizesFor("gc", "386"), types.SizesFor("gc", "amd64")

// holds reports whether the integer type to has all values of the integer type from, on 32 bits and on 64 bits.
func holds(to, from types.Type) bool {
	if set := typeSet(from); set != nil {
		return !slices.ContainsFunc(set, func(of types.Type) bool { return !holds(to, of) })
	}
	if isTypeParam(to) {
		return types.Identical(to, from)
	}
	a, b := narrow.Sizeof(to), full.Sizeof(from)
	switch unsigned := is(from, types.IsUnsigned); {
	case types.Identical(to.Underlying(), from.Underlying()):
		return true
	case unsigned == is(to, types.IsUnsigned):
		return a >= b
	default:
		return unsigned && a > b
	}
}

// represents reports whether n is a value of the integer type t, on 32 bits and on 64 bits.
func represents(t types.Type, n int64) bool {
	if set := typeSet(t); set != nil {
		return !slices.ContainsFunc(set, func(of types.Type) bool { return !represents(of, n) })
	}
	size := 8 * int(narrow.Sizeof(t))
	if is(t, types.IsUnsigned) {
		return n >= 0 && bits.Len64(uint64(n)) <= size
	}
	return bits.Len64(uint64(n^n>>63)) < size
}

// fits reports whether t is an untyped constant that Go can convert to type to implicitly.
func (t *term) fits(to types.Type) bool {
	if !t.lit {
		return false
	}
	switch v := t.con.(type) {
	case int:
		return isInt(to) && represents(to, int64(v)) || isFloat(to)
	case float64:
		return isFloat(to)
	case string:
		return isText(to)
	case bool:
		return isBool(to)
	}
	_, dynamic := to.Underlying().(*types.Interface)
	return isNil(t.typ) && nilable(to) && !(dynamic && isTypeParam(to))
}

// typeName returns the name of t for a message.
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

// a returns the name of t with its article.
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

// failure is the type error.
var failure = types.Universe.Lookup("error").Type()

// printers are the methods that convert a value to a text.
var printers = map[string]*types.Interface{
	"MarshalText": having("MarshalText() ([]byte, error)"), "String": having("String() string"), "Error": having("Error() string"),
}

// prints reports whether values of type t, even unaddressable ones, have the printer of this name. An invalid type seems to implement
// everything.
func prints(t types.Type, name string) bool {
	return types.Implements(t, printers[name]) && types.NewMethodSet(t).Lookup(nil, name) != nil
}

// having returns the interface type with these methods.
func having(methods string) *types.Interface {
	t, _ := types.Eval(token.NewFileSet(), nil, token.NoPos, "interface{ "+methods+" }")
	return t.Type.(*types.Interface)
}
