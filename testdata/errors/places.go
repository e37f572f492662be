package x

import "io"

//ratelimit:rule limit=1 per=1m
//1: a blank line detaches this directive from the declaration below, so that it takes effect nowhere; remove the line

type Detached interface{ M() error }

type X interface {
	//ratelimit:rule limit=1 per=1m
	//2: a directive takes effect nowhere here; write it directly above a type, a method or a field
	io.Reader

	//ratelimit:rule limit=1 per=1m
	//          ^ NoError returns no error, so that its calls cannot be refused; a fallback can stand in for it
	NoError() int

	//ratelimit:wrap
	//          ^ wrap stands on a type
	Wrapped() error
}

//ratelimit:skip
//          ^ skip stands on a method: the rules of its type do not apply there
type Y interface{ M() error }

//ratelimit:rule limit=1 per=1m
//1: a directive takes effect nowhere here; write it directly above a type, a method or a field
func f() {}

//ratelimit:wrap
type C interface{ ~int | ~string }
//6: C is a constraint, not a type of values, so that nothing can wrap it

//ratelimit:wrap
type N int
//6: N has no exported methods, so that there is nothing to limit
