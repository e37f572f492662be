package x

type X interface {
	//ratelimit:rule limit=1 per=1m
	M() error
	//ratelimit:skip
	//          ^ X has no rules that could be skipped
	N() error
}
