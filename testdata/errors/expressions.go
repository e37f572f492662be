package x

import "context"

type X interface {
	//ratelimit:rule key="sms:{idd}" limit=1 per=1m
	//                         ^ unknown name idd; did you mean id?
	Unknown(ctx context.Context, id string) error
	//ratelimit:rule key="{f}" limit=1 per=1m when=f
	//                     ^ a float64 has no stable text form; write int(...) around it
	//                                             ^ a bool is needed here; this is a float64
	Float(f float64) error
	//ratelimit:rule limit=1 per=1m cost=name message="{1 +}"
	//                                   ^ an integer is needed here; this is a string
	//                                                     ^ unexpected end of the expression
	Cost(name string) error
	//ratelimit:rule key="{userID(ctx)}" limit=1 per=1m
	//                            ^ unknown name ctx; Contextless has no parameter of that name
	Contextless(name string) error
}

//ratelimit:rule key="{id}" limit=1 per=1m
//                     ^ unknown name id (in method Without, which this rule covers)
type Y interface {
	With(id string) error
	Without() error
}
