package exprvm

import "reflect"

// hiddenName is a field or a method that is not exported, that needs an address, or that a tag hides.
type hiddenName struct {
	of   reflect.Type
	name string
}

// Hidden shows p a field or a method of T that expr does not see, and returns p.
func Hidden[T any](p *Program, name string, see func(T) any) *Program {
	if p.hidden == nil {
		p.hidden = map[hiddenName]func(any) any{}
	}
	p.hidden[hiddenName{reflect.TypeFor[T](), name}] = func(v any) any { return see(v.(T)) }
	return p
}
