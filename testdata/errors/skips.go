package x

type X interface {
	//ratelimit:rule limit=1 per=1m
	M() error
	//ratelimit:skip
	//          ^ X has no rules that could be skipped
	N() error
}

//ratelimit:skip
//          ^ skip stands on a method: the rules of its type do not apply there
//ratelimit:rule limit=1 per=1m
type F func() error
