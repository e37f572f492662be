package expr

import (
	"cmp"
	"fmt"
	"go/token"
	"go/types"
	"regexp"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"

	naming "github.com/ratelimit-go/ratelimit/generator/internal/names"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// special lowers a function or an operator that one line of Go cannot say, by its name in functions.txt. The arguments are right.
func (c *compiler) special(name string, n ast.Node, args []*term) *term {
	switch name {
	case "len":
		return c.len(n, args[0])
	case "repeat":
		return c.repeat(n, args[0], args[1])
	case "times":
		typ := c.ofTime("Duration", duration)
		return operated(goCall(n, typ, wrapPath, "Multiply", args[0].duration(typ), args[1].duration(typ)))
	case "string":
		return c.string(n, args[0])
	case "kind":
		return c.kind(n, args[0])
	case "matches":
		return c.matches(n, args[0], args[1])
	case "duration":
		return c.duration(n, args[0])
	case "timezone":
		return c.timezone(n, args[0])
	case "dateIn":
		return c.dateIn(n, args)
	case "sortTimes":
		return c.sortTimes(n, args)
	case "flatten":
		return c.flatten(n, args[0])
	case "int":
		return args[0].integer(arithmeticKind(args[0])).at(n)
	case "float":
		return args[0].to(fraction).at(n)
	case "plus":
		return args[0].at(n)
	case "not":
		return c.not(n, args[0].as(types.Bool))
	case "negate":
		t := args[0].unnamed()
		return operated(goCall(n, t.typ, wrapPath, "Negate", t))
	case "less":
		return c.order(n, token.LSS, args[0], args[1])
	case "lessOrEqual":
		return c.order(n, token.LEQ, args[0], args[1])
	case "greater":
		return c.order(n, token.GTR, args[0], args[1])
	case "greaterOrEqual":
		return c.order(n, token.GEQ, args[0], args[1])
	case "min", "max":
		return c.extreme(n, name, args)
	case "mean":
		return c.average(n, "Mean", args)
	case "median":
		return c.average(n, "Median", args)
	}
	return c.integers(n, name, args[0], args[1]) // Add, Subtract, Multiply, Remainder
}

// len lowers len(x). That of a text counts its runes.
func (c *compiler) len(n ast.Node, t *term) *term {
	switch s, ok := t.con.(string); {
	case ok:
		return literal(n, utf8.RuneCountInString(s))
	case isText(t.typ):
		return goCall(n, whole, "unicode/utf8", "RuneCountInString", c.read(t.as(types.String)))
	}
	return goCall(n, whole, "", "len", t)
}

// repeat lowers repeat(text, count). A caller who chose the count could make the text any length:
//
//	wrap.Must(wrap.Repeat(phone, 2))
func (c *compiler) repeat(n ast.Node, t, count *term) *term {
	if count.con == nil {
		return c.errorf(start(count.node), "repeat needs a constant count: a caller could make the text any length")
	}
	return c.read(must(goCall(n, text, wrapPath, "Repeat", c.read(t.as(types.String)), count.integer(types.Int))))
}

// duration returns t, a duration or another integer, as a duration. Go converts a literal.
func (t *term) duration(typ types.Type) *term {
	if isDuration(t.typ) || t.lit {
		return t
	}
	return t.integer(types.Int64).converted(typ)
}

// at returns t as the value of n, which is never nil.
func (t *term) at(n ast.Node) *term {
	v := *t.plainly()
	v.node, v.pointer, v.orEmpty = n, nil, nil
	return &v
}

// extreme lowers min and max of numbers or of lists of numbers:
//
//	max(n, 5)
//	wrap.Must(wrap.Max(sizes))
func (c *compiler) extreme(n ast.Node, name string, args []*term) *term {
	numbers := each(args, func(t *term) *term { return (&term{typ: cmp.Or(elemOf(t.typ), t.typ)}).unnamed() })
	common := numbers[0].typ
	if slices.ContainsFunc(numbers, func(t *term) bool { return !types.Identical(t.typ, common) }) {
		common = kindOf(each(args, func(t *term) *term { return (&term{typ: cmp.Or(elemOf(t.typ), t.basic().typ)}).unnamed() }))
	}
	if common == nil {
		return c.errorf(n, "%s needs numbers of one kind; write int(...) or float(...) around them", name)
	}
	list, ok := c.numbers(n, args, common)
	switch {
	case !ok:
		return nil
	case list != nil:
		return must(goCall(n, common, wrapPath, naming.Upper(name), list))
	}
	if len(args) == 1 {
		return args[0].at(n)
	}
	return goCall(n, common, "", name, each(args, func(t *term) *term { return t.unnamed().to(common) })...)
}

// average lowers mean and median of numbers and of lists of numbers:
//
//	wrap.Mean([]float64{f, 2})
func (c *compiler) average(n ast.Node, fn string, args []*term) *term {
	list, ok := c.numbers(n, args, fraction)
	if !ok {
		return nil
	}
	if list == nil {
		list = listOf(n, fraction, each(args, func(t *term) *term { return t.to(fraction) }), args)
	}
	return goCall(n, fraction, wrapPath, fn, list)
}

// numbers returns one list of all numbers in the arguments, in one type, or nil if no argument is a list:
//
//	slices.Concat(sizes, []int64{5})
func (c *compiler) numbers(n ast.Node, args []*term, elem types.Type) (list *term, ok bool) {
	var lists, single []*term
	for _, t := range args {
		if isList(t.typ) {
			list := c.listTo(t, elem)
			if list == nil {
				return c.errorf(start(t.node), "the elements of this are %s; expected %s: write map(..., int(#))",
					c.typeName(elemOf(t.typ)), c.typeName(elem)), false
			}
			lists = append(lists, list)
		} else {
			single = append(single, t.to(elem))
		}
	}
	switch {
	case len(lists) == 0:
		return nil, true
	case len(single) > 0:
		lists = append(lists, listOf(n, elem, single, single))
	}
	if len(lists) == 1 {
		return lists[0], true
	}
	return goCall(n, types.NewSlice(elem), "slices", "Concat", lists...), true
}

// string lowers string(x), which gives what %v prints.
func (c *compiler) string(n ast.Node, t *term) *term {
	for _, m := range []string{"Error", "String"} {
		if prints(t.typ, m) {
			return c.callMethod(t, m).at(n)
		}
	}
	switch {
	case isNil(t.typ):
		return c.errorf(start(t.node), "nil has no text form")
	case !isAny(t.typ) && hasAddress(t.typ):
		return c.errorf(start(t.node), "string of %s may show an address, which differs from call to call", c.a(t.typ))
	case isText(t.typ), isBytes(t.typ):
		return t.as(types.String).at(n)
	case isBool(t.typ), isInt(t.typ):
		return stable(t).at(n)
	case isFloat(t.typ):
		return goCall(n, text, "fmt", "Sprint", t.unnamed())
	}
	return c.read(must(goCall(n, text, wrapPath, "StringOf", t)))
}

// kind lowers type(x), the name of the type of x.
func (c *compiler) kind(n ast.Node, t *term) *term {
	name := "unknown"
	switch named, _ := types.Unalias(t.typ).(*types.Named); {
	case isNil(t.typ):
		name = "nil"
	case isTypeParam(t.typ), types.IsInterface(t.typ):
		return c.dynamic(t, nil)
	case named != nil && named.Obj().Pkg() != nil:
		name = named.Obj().Pkg().Path() + "." + named.Obj().Name()
	case isBool(t.typ):
		name = "bool"
	case is(t.typ, types.IsUnsigned):
		name = "uint"
	case isInt(t.typ):
		name = "int"
	case isFloat(t.typ):
		name = "float"
	case isText(t.typ):
		name = "string"
	case pointee(t.typ) != nil:
	case isList(t.typ):
		name = "array"
	case isMap(t.typ):
		name = "map"
	case isStruct(t.typ):
		name = "struct"
	}
	parts := t.links
	if pointee(t.typ) != nil {
		parts = t.parts()
	}
	if len(parts) > 0 {
		return c.choice(n, n, alternative{present: parts, value: literal(n, name)}, alternative{value: literal(n, "nil")})
	}
	return literal(n, name)
}

// matches lowers text matches pattern. A pattern from a caller could take any time, so it is a constant, which is compiled once:
//
//	var senderSendPattern = regexp.MustCompile("^\\+41")
//
//	senderSendPattern.MatchString(phone)
func (c *compiler) matches(n ast.Node, subject, pattern *term) *term {
	expr, ok := pattern.con.(string)
	if !ok {
		return c.errorf(start(pattern.node), "matches needs a constant pattern")
	}
	if _, err := regexp.Compile(expr); err != nil {
		return c.errorf(start(pattern.node), "%v", err)
	}
	subject = c.read(subject.as(types.String))
	return &term{node: n, typ: truth, write: func(w *writer) operand {
		compiled := w.names.Package("pattern", w.std("regexp", "MustCompile")+"("+strconv.Quote(expr)+")")
		return w.callOf(compiled+".MatchString", w.term(subject))
	}}
}

// duration lowers duration(text). A constant one becomes a number of units:
//
//	10 * time.Second
func (c *compiler) duration(n ast.Node, t *term) *term {
	typ := c.ofTime("Duration", duration)
	s, ok := t.con.(string)
	if !ok {
		return must(goCall(n, typ, "time", "ParseDuration", c.read(t.as(types.String))))
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return c.errorf(start(t.node), "%q is no duration; write one such as '1h30m'", s)
	}
	if d == 0 {
		return literal(n, 0).converted(typ)
	}
	count, unit := naming.Duration(d)
	return &term{node: n, typ: typ, write: func(w *writer) operand {
		o := primary(w.std("time", unit))
		if count == 1 {
			return o
		}
		return operand{text: strconv.FormatInt(count, 10) + " * " + o.text, prec: token.MUL.Precedence()}
	}}
}

// timezone lowers timezone(name). A constant one is loaded once:
//
//	var senderSendZone = sync.OnceValues(func() (*time.Location, error) { return time.LoadLocation("Asia/Shanghai") })
//
//	wrap.Must(senderSendZone())
func (c *compiler) timezone(n ast.Node, t *term) *term {
	typ := types.NewPointer(c.ofTime("Location", location))
	name, ok := t.con.(string)
	if !ok {
		return must(goCall(n, typ, "time", "LoadLocation", c.read(t.as(types.String))))
	}
	if _, err := time.LoadLocation(name); err != nil {
		return c.errorf(start(t.node), "%v", err)
	}
	return must(&term{node: n, typ: typ, write: func(w *writer) operand {
		load := w.std("time", "LoadLocation") + "(" + strconv.Quote(name) + ")"
		zone := w.names.Package("zone", w.std("sync", "OnceValues")+"(func() (*"+w.std("time", "Location")+", error) { return "+load+" })")
		return w.callOf(zone)
	}})
}

// tried computes a function of constant texts as the generated code does. It returns the error that every call would have, and where the first
// text stands:
//
//	date("2026-02-30")
func tried(name string, args []*term) (at ast.Node, err error) {
	var texts []string
	for _, t := range args {
		if t.closure != nil || !isText(t.typ) {
			continue
		}
		s, ok := t.con.(string)
		if !ok {
			return nil, nil
		}
		texts, at = append(texts, s), cmp.Or(at, t.node)
	}
	switch {
	case len(texts) == 0:
	case name == "date" && len(texts) == 1:
		_, err = wrap.ParseDate(texts[0], time.UTC)
	case name == "date": // a zone, which has its own check, does not change which texts have the format
		if _, err = time.Parse(texts[1], texts[0]); err != nil {
			err = fmt.Errorf("%w; a format shows 2 January 2006, 15:04:05, as '2006-01-02' does", err)
		}
	case name == "sort", name == "sortBy":
		_, err = wrap.Sort([]int(nil), texts[0])
	case name == "int":
		if _, err = strconv.Atoi(texts[0]); err != nil {
			err = fmt.Errorf("found %q; expected an integer of 64 bits", texts[0])
		}
	case name == "float":
		if _, err = strconv.ParseFloat(texts[0], 64); err != nil {
			err = fmt.Errorf("found %q; expected a number", texts[0])
		}
	}
	return at, err
}

// dateIn lowers date(text, format, zone):
//
//	wrap.Must(time.ParseInLocation("2006-01-02", day, wrap.Must(senderSendZone())))
func (c *compiler) dateIn(n ast.Node, args []*term) *term {
	zone := c.timezone(args[2].node, args[2])
	if zone == nil {
		return nil
	}
	day, format := c.read(args[0].as(types.String)), args[1].as(types.String)
	return must(goCall(n, c.ofTime("Time", moment), "time", "ParseInLocation", format, day, zone))
}
