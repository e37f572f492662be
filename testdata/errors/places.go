package x

import "io"

//ratelimit:rule limit=1 per=1m
//1: rule has no effect before an empty line; write it directly above what it is about

type Detached interface{ M() error }

type X interface {
	//ratelimit:rule limit=1 per=1m
	//2: rule has no effect here; write it on a line of its own, directly above a type of the package, or above a method or a func field of it
	io.Reader

	//ratelimit:rule limit=1 per=1m
	//          ^ NoError returns no error, so its calls cannot be refused: add an error result, or write //ratelimit:fallback NAME
	NoError() int

	//ratelimit:wrap
	//          ^ wrap belongs above a type
	Wrapped() error
}

//ratelimit:skip
//          ^ skip belongs above a method; it says that the rules of the type do not apply there
type Y interface{ M() error }

//ratelimit:rule limit=1 per=1m
//1: rule has no effect above a function; it goes above a type of the package, or above a method or a func field of it
func f() {}

//ratelimit:wrap
type C interface{ ~int | ~string }
//6: C is a constraint: there are no values of it to wrap

//ratelimit:wrap
type N int
//6: N has no exported methods, so there is nothing to limit

//ratelimit:rule limit=1 per=1m
//1: rule has no effect above a group of types; it goes inside the group, above the name of a type
type (
	G1 interface{ M() error }
	G2 interface{ M() error }
)
