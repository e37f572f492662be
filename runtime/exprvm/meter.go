package exprvm

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/vm/runtime"
)

const (
	// maxSize bounds the size of a text or a list that a caller sends, in bytes.
	maxSize = 64 << 10
	// maxWork bounds the work of one evaluation. Each byte of a text and each element of a list that a function reads or makes counts one, and
	// so does each round of a loop.
	maxWork = 1 << 20
)

var errWork = errors.New("the expression has too much to do for these values")

// meter counts the work of one evaluation before the work is done.
type meter struct{ work int64 }

func (m *meter) count(n int64) error {
	if m.work += n; m.work > maxWork || n > maxWork {
		return errWork
	}
	return nil
}

// bounded returns an error if v is a text or a list of more than maxSize bytes.
func bounded(v any) error {
	switch v := v.(type) {
	case nil, bool, int, int64, float64:
		return nil
	case string:
		if len(v) <= maxSize {
			return nil
		}
	}
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
		return fmt.Errorf("found a %s of over %d bytes", r.Kind(), maxSize)
	}
	return nil
}

// boundedResult returns a function that calls f, and returns an error instead of a text or a list of more than maxSize bytes.
func boundedResult(f func(args ...any) (any, error)) func(args ...any) (any, error) {
	return func(args ...any) (any, error) {
		v, err := f(args...)
		if err == nil {
			err = bounded(v)
		}
		return v, err
	}
}

// size returns the work of reading v.
func size(v any) int64 {
	switch v := v.(type) {
	case nil, bool, int, int64, float64:
		return 0
	case string:
		return int64(len(v))
	}
	r := reflect.Indirect(reflect.ValueOf(v))
	switch r.Kind() {
	case reflect.String, reflect.Slice, reflect.Array, reflect.Map:
		return int64(r.Len())
	}
	return 0
}

// read returns its second argument, and counts the work of reading it with the first, the meter.
func read(args ...any) (any, error) {
	return args[1], args[0].(*meter).count(1 + size(args[1]))
}

// counted returns one of expr's functions with the meter as an additional first argument. It counts the size of the result, which made returns,
// before the function makes it.
func counted(name string, made func(args []any) int64) func(...any) (any, error) {
	b := library(name)
	return func(args ...any) (any, error) {
		if err := args[0].(*meter).count(made(args[1:])); err != nil {
			return nil, err
		}
		return b(args[1:]...)
	}
}

// repeated returns the length of a repeated text.
func repeated(args []any) int64 {
	return int64(max(0, runtime.ToInt(args[1]))) * size(args[0])
}

// substituted returns how long a text may be after a replacement.
func substituted(args []any) int64 {
	text, old := args[0].(string), args[1].(string)
	return size(text) + int64(strings.Count(text, old))*size(args[2])
}

// connected returns how much longer the joined text of a list is than its elements.
func connected(args []any) int64 {
	n := size(args[0])
	if len(args) > 1 {
		n *= 1 + size(args[1])
	}
	return n
}

// added returns l + r. The first argument is the meter.
func added(args ...any) (any, error) {
	l, isText := plain(args[1]).(string)
	r, both := plain(args[2]).(string)
	if isText && both {
		return l + r, args[0].(*meter).count(int64(len(l)) + int64(len(r)))
	}
	return operate("+", args[1], args[2])
}

// meter returns a node for the meter, which follows the values of an expression.
func (p *patcher) meter() ast.Node {
	values := &ast.IdentifierNode{Value: envName}
	m := &ast.MemberNode{Node: values, Property: &ast.IntegerNode{Value: p.count}}
	p.done[m], p.done[values], p.metered = true, true, true
	return m
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
	switch (*node).(type) {
	case *ast.NilNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.StringNode:
		return
	}
	p.replace(node, "read", p.meter(), *node)
}
