package x

type X interface {
	//ratelimit:rule limit=1 per=1m
	M() error
	//ratelimit:skip
	//          ^ X has no rules that could be skipped
	N() error
}

//ratelimit:skip
//          ^ skip belongs above a method; it says that the rules of the type do not apply there
//ratelimit:rule limit=1 per=1m
type F func() error
