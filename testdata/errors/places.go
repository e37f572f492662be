package x

import "io"

//ratelimit:rule limit=1 per=1m
//1: a blank line detaches this directive from the declaration below, so that it takes effect nowhere; remove the line

type Detached interface{ M() error }

type X interface {
	//ratelimit:rule limit=1 per=1m
	//2: a directive above an embedded type takes effect nowhere; write it above the type around it, or above the method, spelled out there
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
//1: a directive above a function takes effect nowhere; write it above a method, or above a func type, whose values can be limited
func f() {}

//ratelimit:wrap
type C interface{ ~int | ~string }
//6: C is a constraint: there are no values of it to wrap

//ratelimit:wrap
type N int
//6: N has no exported methods, so that there is nothing to limit

//ratelimit:rule limit=1 per=1m
//1: a directive above a group of types takes effect nowhere; write it above each type in the group that it is for
type (
	G1 interface{ M() error }
	G2 interface{ M() error }
)
