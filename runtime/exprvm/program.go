// Package exprvm runs the expressions of directives that were not turned into Go on the machine of expr-lang/expr. Generated
// code declares one [Program] for each of them and calls it with the values that the expression names. It is the only package
// of the runtime that imports expr: a program whose expressions all became Go does not link it. It is not a general wrapper
// around expr: what an expression may say was checked when the code was generated.
//
// An expression means here what it would mean as Go. Expr knows values by their types alone, so some things are patched
// into the trees of its expressions: values of named types count as what they are made of, a call converts its arguments as
// far as no value is changed by it, and what goes through nil is an error that says so. So is an integer that overflows, and a
// text with an address in it.
//
// A caller may send anything, so work is bounded: a text or a list of over 64 KiB is an error before anything is evaluated, wherever an
// expression meets it, and an evaluation that would read and make more than a million bytes, elements and rounds of loops ends with an
// error before it makes them.
package exprvm

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"
)

// Program is an expression. It is compiled when it is first needed, and safe for use by many goroutines.
type Program struct {
	source string
	names  []string
	hidden map[hiddenName]func(any) any

	once    sync.Once
	program *vm.Program
	metered bool // the machine is given a meter behind the values
	err     error
}

// New returns the program for an expression that refers to values by the given names. Its methods take the values in the
// same order.
func New(source string, names ...string) *Program {
	return &Program{source: source, names: names}
}

// Err compiles the program and returns what is wrong with it: a *file.Error of expr's, with the place.
func (p *Program) Err() error {
	p.once.Do(func() {
		patcher := newPatcher(p.names)
		ops := []expr.Option{
			expr.Optimize(false), // its rewritings rely on types that are not known here
			expr.Patch(patcher),
		}
		for name, f := range p.functions() {
			ops = append(ops, expr.Function("$"+name, f))
		}
		for _, name := range p.names {
			if _, ok := builtin.Index[name]; ok {
				ops = append(ops, expr.Function(name, call)) // or it would not be parsed as a name
			}
		}
		p.program, p.err = expr.Compile(p.source, ops...)
		p.metered = patcher.metered
	})
	return p.err
}

// functions are what expr is to call. A $ keeps their names apart from those of variables.
func (p *Program) functions() map[string]func(...any) (any, error) {
	return map[string]func(...any) (any, error){
		"at": boundedResult(p.at), "look": boundedResult(look), "call": boundedResult(call), "in": in, "equal": equal, "within": within,
		"hold": hold, "held": held, "value": value, "shown": shown,
		"plain":  func(args ...any) (any, error) { return plain(args[0]), nil },
		"list":   func(args ...any) (any, error) { return list(args[0]), nil },
		"number": func(args ...any) (any, error) { return number(args[0]), nil },
		"index":  func(args ...any) (any, error) { return index(args[0]) },

		"reversed": reversed, "mirrored": mirrored, "now": library("now"), "date": library("date"),

		"operate": operate, "opposite": opposite, "absolute": absolute, "integral": integral, "shifted": shifted,
		"read": read, "added": added, "repeat": makers["repeat"], "replace": makers["replace"], "join": makers["join"],
		"least": extreme(">"), "greatest": extreme("<"),
	}
}

// library is a function of expr's as it is. The machine would give it what a pointer points to, and so no *time.Location.
func library(name string) func(...any) (any, error) {
	b := builtin.Builtins[builtin.Index[name]]
	if b.Safe == nil {
		return b.Func
	}
	return func(args ...any) (any, error) {
		v, _, err := b.Safe(args...)
		return v, err
	}
}

// Text returns the value of an expression as a text with a stable form.
func (p *Program) Text(values ...any) (string, error) { return evaluate(p, values, text) }

// Bool returns the value of an expression that is true or false.
func (p *Program) Bool(values ...any) (bool, error) { return evaluate(p, values, boolean) }

// Int returns the value of an expression that is an integer.
func (p *Program) Int(values ...any) (int64, error) { return evaluate(p, values, integer) }

// Value returns the value of an expression as the machine computes it.
func (p *Program) Value(values ...any) (any, error) {
	return evaluate(p, values, func(v any) (any, error) { return v, nil })
}

// evaluate runs p. The methods of its result may panic, too.
func evaluate[T any](p *Program, values []any, as func(any) (T, error)) (result T, err error) {
	if err := p.Err(); err != nil {
		return result, fmt.Errorf("the expression does not compile with the expr of this program: %w", err)
	}
	if len(values) != len(p.names) {
		return result, fmt.Errorf("%d values for %d names", len(values), len(p.names))
	}
	for i, v := range values {
		if err := bounded(v); err != nil {
			return result, fmt.Errorf("%s: %w", p.names[i], err)
		}
	}
	if p.metered {
		values = append(values[:len(values):len(values)], new(meter))
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	v, err := vm.Run(p.program, values)
	if err != nil {
		return result, cause(err)
	}
	return as(v)
}

// cause is what the machine's error is about, without the drawing of the expression around it.
func cause(err error) error {
	var at *file.Error
	if !errors.As(err, &at) {
		return err
	}
	var fault runtime.Error
	if at.Prev != nil && !errors.As(at.Prev, &fault) {
		return at.Prev
	}
	return errors.New(at.Message)
}

// OrNil makes a function of a context, such as ratelimit.ClientIP, count as nil where it finds nothing.
func OrNil[C any](find func(C) string) func(C) any {
	return func(c C) any {
		if s := find(c); s != "" {
			return s
		}
		return nil
	}
}
