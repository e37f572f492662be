package x

//ratelimit:wrap
//          ^ Lone has no rule and hands out nothing that has limits, so its wrapper would limit nothing
type Lone interface{ M() error }

//ratelimit:rule limit=1 per=1m
//          ^ this rule applies to no method of Empty, so it limits nothing; only methods that return an error can refuse calls
type Empty interface{}

//ratelimit:rule limit=1 per=1m
//          ^ this rule applies to no method of Silent, so it limits nothing; only methods that return an error can refuse calls
type Silent interface{ M() int }

//ratelimit:rule limit=1 per=1m
//          ^ this rule applies to no method of Skipped, so it limits nothing; only methods that return an error can refuse calls
type Skipped interface {
	//ratelimit:skip
	M() error
}

//ratelimit:wrap
//          ^ F has no rule and hands out nothing that has limits, so its wrapper would limit nothing
type F func() error

//ratelimit:wrap
type Embedding interface{ Ruled }

type Ruled interface {
	//ratelimit:rule limit=1 per=1m
	M() error
}

type Nameless struct {
//   ^ Nameless has neither exported methods nor funcs, so there is nothing to limit
	//ratelimit:rule limit=1 per=1m
	_ func() error
}
