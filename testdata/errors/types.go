package x

import "sync"

type S struct {
	//ratelimit:rule limit=1 per=1m
	//          ^ S has directives on its methods, so they cannot go on its fields, too
	F func() error
}

//ratelimit:rule limit=1 per=1m
func (S) M() error { return nil }

//ratelimit:rule limit=1 per=1m
//          ^ n returns no error, so its calls cannot be refused: add an error result, or write //ratelimit:fallback NAME
//ratelimit:skip
//          ^ skip belongs above a method; it says that the rules of the type do not apply there
type n func()

type T struct {
	//ratelimit:rule limit=1 per=1m
	//          ^ N is not a func, so nothing can call it
	N int
	//ratelimit:wrap
	//          ^ wrap belongs above a type
	F func() error

	//ratelimit:rule limit=1 per=1m
	//2: rule has no effect before an empty line; write it directly above what it is about

	G func() error

	//ratelimit:rule limit=1 per=1m
	//2: rule has no effect here; write it on a line of its own, directly above a type of the package, or above a method or a func field of it
	S
}

type L struct {
//6: L holds a lock in in, so it cannot be copied
	//ratelimit:rule limit=1 per=1m
	F  func() error
	in struct{ mu [1]sync.Mutex }
}

//ratelimit:wrap
type Empty struct{ n int }
//6: Empty has no exported methods, so there is nothing to limit

//ratelimit:rule limit=1 per=1m
//          ^ m is not exported: the wrapper has exported methods only
func (*P) m() error { return nil }

type P struct{}

//ratelimit:rule limit=1 per=1m
func (P) M() error { return nil }

//ratelimit:rule limit=1 per=1m
//          ^ the type of the receiver is not declared in this package
func (Gone) M() error { return nil }

//ratelimit:wrap
//          ^ G has no rule and hands out nothing that has limits, so its wrapper would limit nothing
type G func() error

//ratelimit:wrap name=LimitG
//                    ^ two wrappers would declare LimitG; name one of them with //ratelimit:wrap name=
type H func() error
