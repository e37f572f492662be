package exprvm

import (
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm/runtime"

	"github.com/ratelimit-go/ratelimit/runtime/exprvm/checked"
)

const (
	// maxSize bounds the size of a text or a list that a caller sends, in bytes.
	maxSize = checked.MaxText
	// maxWork bounds the work of one evaluation. Each byte of a text and each element of a list that a function reads or makes counts one, and
	// so does each round of a loop.
	maxWork = 1 << 20
)

var errWork = errors.New("the expression has too much to do for these values")

// evaluation is what one evaluation knows of itself. Functions get it as an argument.
type evaluation struct {
	work    int64
	missing string // the identity that the context lacks
	assumed any    // the value of such an identity
}

// count counts work before the work is done.
func (e *evaluation) count(n int64) {
	if e.work += n; e.work > maxWork || n > maxWork {
		panic(errWork)
	}
}

// bounded returns an error if v is a text or a list of more than maxSize bytes.
func bounded(v any) error {
	r := reflect.Indirect(reflect.ValueOf(v))
	n := 0
	switch r.Kind() {
	case reflect.String:
		n = r.Len()
	case reflect.Slice, reflect.Array, reflect.Map:
		n = r.Len() * max(1, int(r.Type().Elem().Size()))
		for i := 0; n <= maxSize && r.Kind() != reflect.Map && i < r.Len() && r.Type().Elem().Kind() == reflect.String; i++ {
			n += r.Index(i).Len()
		}
	}
	if n > maxSize {
		return checked.TooLarge(r.Kind().String())
	}
	return nil
}

// boundedResult returns a function that calls f, and returns an error instead of a text or a list of more than maxSize bytes.
func boundedResult(f function) function {
	return func(args ...any) any {
		v := f(args...)
		return must(v, bounded(v))
	}
}

// size returns the work of reading v.
func size(v any) int64 {
	switch r := reflect.Indirect(reflect.ValueOf(v)); r.Kind() {
	case reflect.String, reflect.Slice, reflect.Array, reflect.Map:
		return int64(r.Len())
	}
	return 0
}

// read returns its second argument, and counts the work of reading it.
func read(args ...any) any {
	args[0].(*evaluation).count(1 + size(args[1]))
	return args[1]
}

// counted returns a function with the evaluation as an additional first argument. It counts the work of a call, and the size of its result, before
// it calls the function.
func counted(work func(args []any) int64, f function) function {
	return func(args ...any) any {
		args[0].(*evaluation).count(work(args[1:]))
		return f(args[1:]...)
	}
}

// repeated returns the length of a repeated text.
func repeated(args []any) int64 {
	return int64(max(0, runtime.ToInt(args[1]))) * size(args[0])
}

// substituted returns how long a text can become by a replacement. It returns 0 if replace refuses to make so long a text.
func substituted(args []any) int64 {
	text, old := args[0].(string), args[1].(string)
	n := size(text) + int64(strings.Count(text, old))*size(args[2])
	if len(args) == 3 && n > maxWork {
		return 0
	}
	return n
}

// replace replaces in its first argument the second one by the third one, at most as often as a fourth one says.
func replace(args ...any) any {
	if len(args) == 3 {
		return must(checked.Replace(args[0].(string), args[1].(string), args[2].(string)))
	}
	return library("replace")(args...)
}

// paired returns how many pairs of elements uniq compares.
func paired(args []any) int64 { return size(args[0]) * size(args[0]) / 2 }

// spread returns how many elements a list has together with the lists in it.
func spread(args []any) int64 { return walked(args[0], func(any) bool { return false }).weight }

// indented returns about how long the JSON of a value is.
func indented(args []any) int64 {
	return walked(args[0], func(v any) bool {
		switch v.(type) {
		case json.Marshaler, encoding.TextMarshaler:
			return true
		}
		return false
	}).weight
}

// walk is what a walk through a value finds.
type walk struct {
	isOpaque func(any) bool // a method turns the value into a text
	weight   int64          // about how many bytes the value takes in JSON that is indented, or more than maxWork
	address  bool           // fmt would print a memory address in the value
}

// opaqueWeight is the weight of a value that a method turns into a text.
const opaqueWeight = 64

func walked(v any, isOpaque func(any) bool) *walk {
	w := &walk{isOpaque: isOpaque}
	w.into(reflect.ValueOf(v), 0)
	return w
}

// into walks into a value at a depth. The depth also bounds the recursion into lists that are shared or have a cycle.
func (w *walk) into(r reflect.Value, depth int64) {
	if w.weight += 1 + 2*depth; w.weight > maxWork {
		return
	}
	if r.IsValid() && r.CanInterface() && w.isOpaque(r.Interface()) {
		w.weight += opaqueWeight
		return
	}
	inside := func(r reflect.Value) { w.into(r, depth+1) }
	switch r.Kind() {
	case reflect.String:
		w.weight += 6 * int64(r.Len()) // JSON may show a character as \u003c
	case reflect.Pointer:
		w.address = w.address || depth > 0 && !r.IsNil()
		inside(r.Elem())
	case reflect.Func, reflect.Chan, reflect.UnsafePointer:
		w.address = w.address || !r.IsNil()
	case reflect.Interface:
		inside(r.Elem())
	case reflect.Slice, reflect.Array:
		for i := 0; i < r.Len() && w.weight <= maxWork; i++ {
			inside(r.Index(i))
		}
	case reflect.Map:
		for each := r.MapRange(); w.weight <= maxWork && each.Next(); {
			inside(each.Key())
			inside(each.Value())
		}
	case reflect.Struct:
		for field, value := range r.Fields() {
			w.weight += int64(len(field.Name))
			inside(value)
		}
	}
}

// connected returns how much longer the joined text of a list is than its elements.
func connected(args []any) int64 {
	n := size(args[0])
	if len(args) > 1 {
		n *= 1 + size(args[1])
	}
	return n
}

// added returns l + r. The first argument is the evaluation.
func added(args ...any) any {
	l, isText := plain(args[1]).(string)
	r, both := plain(args[2]).(string)
	if isText && both {
		args[0].(*evaluation).count(int64(len(l)) + int64(len(r)))
		return l + r
	}
	return operate("+", args[1], args[2])
}

// evaluation returns a node for the evaluation, which follows the values of an expression.
func (p *patcher) evaluation() ast.Node {
	values := &ast.IdentifierNode{Value: envName}
	e := &ast.MemberNode{Node: values, Property: &ast.IntegerNode{Value: len(p.index)}}
	p.done[e], p.done[values] = true, true
	return e
}

// countArguments makes one of expr's functions count what it reads, and each round of its loop.
func (p *patcher) countArguments(n *ast.BuiltinNode) {
	for i, arg := range n.Arguments {
		switch arg := arg.(type) {
		case *ast.PredicateNode:
			p.countReading(&arg.Node)
		default:
			p.countReading(&n.Arguments[i])
		}
	}
}

func (p *patcher) countReading(node *ast.Node) {
	if !isConstant(*node) {
		p.replace(node, "read", p.evaluation(), *node)
	}
}
