package x

//line y.y:100
type X interface {
	//ratelimit:rule key="{b}" limit=1 per=1m
	//                     ^ unknown name b; the parameter is a
	M(a string) error
}
