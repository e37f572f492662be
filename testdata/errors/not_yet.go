package x

type X interface {
	//ratelimit:rule limit=n per=1m
	//                     ^ an expression as limit is not supported yet; expected a number
	Limit(n int) error
	//ratelimit:rule limit=1 per=1m algorithm=sliding-counter slices=4
	//                                                        ^ slices is not supported yet
	Counter() error
	//ratelimit:rule limit=1 per=1m distinct="{a}" wait=1s scope=instance mode=shadow
	//                              ^ distinct is not supported yet
	//                                             ^ wait is not supported yet
	//                                                     ^ scope is not supported yet
	//                                                                    ^ mode is not supported yet
	Many(a string) error
	//ratelimit:rule limit=1 per=1m refund=error on-error=allow prepay warmup=1s queue=3 block=1m
	//                              ^ refund is not supported yet
	//                                           ^ on-error is not supported yet
	//                                                          ^ prepay is not supported yet
	//                                                                 ^ warmup is not supported yet
	//                                                                           ^ queue is not supported yet
	//                                                                                   ^ block is not supported yet
	More() error
	//ratelimit:fallback later
	//          ^ fallback is not supported yet
	Fallback() error
}

func later() error { return nil }

//ratelimit:wrap on-error=allow
//               ^ on-error is not supported yet
type Y interface{ M() error }

//ratelimit:wrap
//          ^ a directive on a struct is not supported yet; annotate an interface
type S struct {
	//ratelimit:rule limit=1 per=1m
	//          ^ a directive on a field of a struct is not supported yet; annotate an interface
	F func() error
}

//ratelimit:rule limit=1 per=1m
//          ^ a directive on a method of a struct is not supported yet; annotate an interface
func (S) M() error { return nil }

//ratelimit:rule limit=1 per=1m
//          ^ a directive on a func type is not supported yet; annotate an interface
type F func() error
