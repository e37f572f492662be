// Package exprvm runs expressions of directives on the virtual machine of expr-lang/expr, if they were not translated to Go. Generated code
// declares one [Program] for each of them, and calls it with the values that the expression names. It is the only package of the runtime that
// imports expr: a program whose expressions were all translated to Go does not link expr. The package is not a general wrapper around expr:
// it relies on the checks that were made when the code was generated.
//
// An expression means the same here as it would in Go. Expr itself differs, so this package patches the trees of expressions. A value of a
// named type counts as a value of its underlying type. A call converts its arguments if that does not change their values. A field, method or
// element of nil is an error that says so. So is an integer that overflows, and a text that contains a memory address.
//
// A caller may send anything, so work is bounded. A text or a list of more than 64 KiB is an error wherever an expression meets it. An
// evaluation that would read and make more than a million bytes, elements and rounds of loops ends with an error before it makes them.
package exprvm

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/ratelimit-go/ratelimit/internal/decide"
)

// Program is an expression. It is compiled when it is first used, and safe for use by many goroutines.
type Program struct {
	source string
	names  []string
	hidden map[hiddenName]func(any) any

	once    sync.Once
	program *vm.Program
	err     error
}

// New returns the program for an expression that refers to values by the given names. Its methods take the values in the
// same order.
func New(source string, names ...string) *Program {
	return &Program{source: source, names: names, hidden: map[hiddenName]func(any) any{}}
}

// Err compiles the program and returns its error: a *file.Error of expr, which has the position.
func (p *Program) Err() error {
	p.once.Do(func() {
		ops := []expr.Option{
			expr.Optimize(false), // the optimizer relies on types that are not known here
			expr.Patch(newPatcher(p.names)),
		}
		declare := func(name string, f function) {
			ops = append(ops, expr.Function(name, func(args ...any) (any, error) { return f(args...), nil }))
		}
		for name, f := range p.functions() {
			declare("$"+name, f)
		}
		for _, name := range p.names {
			if _, ok := builtin.Index[name]; ok {
				declare(name, call) // otherwise expr would not parse it as a name
			}
		}
		p.program, p.err = expr.Compile(p.source, ops...)
	})
	return p.err
}

// function is a function of expressions. If it fails it panics with the error, as the functions of expr do, and the machine returns that.
type function = func(args ...any) any

// must returns v, and panics if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// functions returns the functions that patched expressions call. Their names begin with $, which no variable's name does.
func (p *Program) functions() map[string]function {
	all := map[string]function{
		"at": boundedResult(p.at), "call": boundedResult(call), "in": in, "equal": equal, "within": within, "hold": hold, "held": held,
		"value": ofOne(target), "plain": ofOne(plain), "list": ofOne(list), "number": ofOne(number), "index": ofOne(index),
		"operate": operate, "added": added, "opposite": opposite, "mirrored": mirrored, "read": read,
	}
	maps.Copy(all, substitutes)
	maps.Copy(all, makers)
	return all
}

// library returns one of expr's own functions for calls of ours. The machine replaces pointer arguments by what they point to, so it could not
// pass a *time.Location.
func library(name string) function {
	b := builtin.Builtins[builtin.Index[name]]
	return func(args ...any) any {
		if b.Safe == nil {
			return must(b.Func(args...))
		}
		v, _, err := b.Safe(args...)
		return must(v, err)
	}
}

// ofOne returns a function of one argument.
func ofOne(f func(any) any) function {
	return func(args ...any) any { return f(args[0]) }
}

// Text returns the value of an expression as a text with a stable form.
func (p *Program) Text(values ...any) (string, error) { return evaluate(p, values, text) }

// Bool returns the value of an expression that is true or false.
func (p *Program) Bool(values ...any) (bool, error) { return evaluate(p, values, boolean) }

// Int returns the value of an expression that is an integer.
func (p *Program) Int(values ...any) (int64, error) { return evaluate(p, values, integer) }

// Duration returns the value of an expression that is a time.Duration.
func (p *Program) Duration(values ...any) (time.Duration, error) {
	return evaluate(p, values, duration)
}

// Value returns the value of an expression of any type.
func (p *Program) Value(values ...any) (any, error) {
	return evaluate(p, values, func(v any) (any, error) { return v, nil })
}

// evaluate runs p, and converts the result by as. The error is a decide.Missing if an identity that the context lacks would have avoided it.
func evaluate[T any](p *Program, values []any, as func(any) (T, error)) (result T, err error) {
	var e evaluation
	result, err = run(p, values, &e, as)
	if err == nil || e.missing == "" {
		return result, err
	}
	if _, other := run(p, values, &evaluation{assumed: "0"}, as); other == nil {
		err = decide.Missing(e.missing)
	}
	return result, err
}

// run runs p, and converts the result by as. It turns panics of both into errors: as may call methods of the result.
func run[T any](p *Program, values []any, e *evaluation, as func(any) (T, error)) (result T, err error) {
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
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	v, err := vm.Run(p.program, append(values[:len(values):len(values)], e))
	if err != nil {
		return result, cause(err)
	}
	return as(v)
}

// cause returns the cause of the machine's error, without the picture of the expression around it.
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

// identity is a function of expressions that finds who calls.
type identity struct {
	what string
	find any // a func(C) string
}

// Identity returns the value for clientIP or userID. The function find is wrap.ClientIP or wrap.UserID, and what is "client IP" or "user ID". In
// an expression, they return nil instead of "".
func Identity[C any](what string, find func(C) string) any { return identity{what, find} }

// Known is Identity for an identity that the caller has looked up: "" if the context carries none. A program that asks for it gives only the
// context of the call.
func Known(what, found string) any {
	return Identity(what, func(any) string { return found })
}
