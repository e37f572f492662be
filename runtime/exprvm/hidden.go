package exprvm

import "reflect"

// hiddenName is a field or a method that expr does not see, because it is not exported, needs an address, or is hidden by a tag.
type hiddenName struct {
	of   reflect.Type
	name string
}

// Hidden adds to p a field or a method of T that expr does not see, and returns p.
func Hidden[T any](p *Program, name string, see func(T) any) *Program {
	p.hidden[hiddenName{reflect.TypeFor[T](), name}] = func(v any) any { return see(v.(T)) }
	return p
}
