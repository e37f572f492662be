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
	"slices"
	"sync"
	"time"

	"github.com/expr-lang/expr"
	"github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/vm"

	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
)

// Program is an expression. It is compiled when it is first used, and safe for use by many goroutines.
type Program struct {
	source string
	names  []string
	hidden map[hiddenName]func(any) any

	once    sync.Once
	program *vm.Program
	metered bool // the machine gets a meter behind the values
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
		patcher := newPatcher(p.names)
		ops := []expr.Option{
			expr.Optimize(false), // the optimizer relies on types that are not known here
			expr.Patch(patcher),
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
		p.metered = patcher.metered
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

// evaluate runs p, and converts the result by as. The error is a bridge.Missing if an identity that the context lacks would have avoided it.
func evaluate[T any](p *Program, values []any, as func(any) (T, error)) (result T, err error) {
	missing := ""
	result, err = run(p, bound(values, func(what string) any { missing = what; return nil }), as)
	if err == nil || missing == "" {
		return result, err
	}
	if _, other := run(p, bound(values, func(string) any { return "0" }), as); other == nil {
		err = bridge.Missing(missing)
	}
	return result, err
}

// bound returns values with identities that call absent if a context carries none.
func bound(values []any, absent func(what string) any) []any {
	own := values
	for i, v := range values {
		if id, ok := v.(identity); ok {
			if &own[0] == &values[0] {
				own = slices.Clone(values)
			}
			own[i] = id(absent)
		}
	}
	return own
}

// run runs p, and converts the result by as. It turns panics of both into errors: as may call methods of the result.
func run[T any](p *Program, values []any, as func(any) (T, error)) (result T, err error) {
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

// identity returns the function of expressions that finds who calls. It returns what absent returns if a context does not say.
type identity func(absent func(what string) any) any

// Identity returns the value for clientIP or userID. The function find is wrap.ClientIP or wrap.UserID, and what is "client IP" or "user ID". In
// an expression, they return nil instead of "".
func Identity[C any](what string, find func(C) string) any {
	return identity(func(absent func(string) any) any {
		return func(c C) any {
			if s := find(c); s != "" {
				return s
			}
			return absent(what)
		}
	})
}

// Known is Identity for an identity that the caller has looked up: "" if the context carries none. A program that asks for it gives only the
// context of the call.
func Known(what, found string) any {
	return Identity(what, func(any) string { return found })
}
