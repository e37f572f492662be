package x

import "context"

type X interface {
	//ratelimit:rule key="sms:{idd}" limit=1 per=1m
	//                         ^ unknown name idd; did you mean id? the parameters are ctx, id
	Unknown(ctx context.Context, id string) error
	//ratelimit:rule key="{f}" limit=1 per=1m when=f
	//                     ^ a float64 has no stable text form; write int(...) around it
	//                                             ^ a bool is needed here; this is a float64
	Float(f float64) error
	//ratelimit:rule limit=1 per=1m cost=name message="{1 +}"
	//                                   ^ a number is needed here; this is a string
	//                                                     ^ unexpected end of the expression
	Cost(name string) error
	//ratelimit:rule key="{userID(ctx)}" limit=1 per=1m
	//                            ^ unknown name ctx; the method has no parameter that is a context.Context or has a method Context() context.Context
	Contextless(name string) error
}

//ratelimit:rule key="{id}" limit=1 per=1m
//                     ^ unknown name id in Without, NoneEither, which this rule covers; put //ratelimit:skip on the methods that the rule is not for, or the rule on the methods that it is for
type Y interface {
	With(id string) error
	Without() error
	NoneEither() error
}
