package x

//line y.y:100
type X interface {
	//ratelimit:rule key="{b}" limit=1 per=1m
	//                     ^ unknown name b
	M(a string) error
}
