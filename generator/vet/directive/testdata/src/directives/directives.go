package directives

// Sender is annotated. The expected findings stand before the directives, as nothing may follow a directive on its line.
//
/* want `unknown argument "nam"; did you mean name\?` */ //ratelimit:wrap nam=X
/* want `unknown argument "keey"; did you mean key\?` */ //ratelimit:rule keey="{a}" limit=1 per=1m
type Sender interface {
	/* want `unknown verb "rulee"; did you mean rule\?` */ //ratelimit:rulee limit=1 per=1m
	/* want `"// ratelimit:rule" is not a directive; write //ratelimit:rule` */ // ratelimit:rule limit=1 per=1m
	/* want `"//rateLimit:rule" is not a directive` */ //rateLimit:rule limit=1 per=1m
	/* want `"//ratlimit:rule" is not a directive` */ //ratlimit:rule limit=1 per=1m
	/* want `"//ratelimit: rule" is not a directive` */ //ratelimit: rule limit=1 per=1m
	/* want `"//ratelimit: limit" is not a directive` */ //ratelimit: limit=1 per=1m
	/* want `missing verb before the argument limit` */ //ratelimit:limit=1 per=1m
	/* want `expected a duration above zero` `unknown algorithm "token-bukcet"; did you mean token-bucket\?` */ //ratelimit:rule limit=1 per=soon algorithm="token-bukcet"
	M(a string) error

	/* want `rule has no effect before an empty line` */ //ratelimit:rule limit=1 per=1m

	N() error
}

type (
	// Grouped is one of several.
	//
	//ratelimit:rule limit=1 per=1m
	Grouped interface{ M() error }

	/* want `unknown argument "limt"` */ //ratelimit:rule limt=1 per=1m
	Other interface{ M() error }
)

/* want `"// ratelimit:wrap" is not a directive` */ // ratelimit:wrap
type Alias = Sender

func f() {
	_ = 1 /* want `skip has no effect at the end of a line` */ //ratelimit:skip
}

/* want `skip has no effect here` */ //ratelimit:skip
var x int

// Rate-limit rule name=login is prose, and so is ratelimit:nothing.
//
/* want `"// ratelimit:" looks like a directive; write //ratelimit:rule, or a sentence without the colon` */ // ratelimit: see there
/* want `"//ratelimiter:skip" is not a directive; write //ratelimit:skip` */ //ratelimiter:skip
/* want `"// ratelimit:rule" is not a directive; write //ratelimit:rule` */ // ratelimit:rule of thumb
var y int

type Funcs struct {
	//ratelimit:rule limit=1 per=1m
	Send func() error
}

type Embeds interface {
	/* want `skip has no effect here` */ //ratelimit:skip
	Sender
}

/* want `//ratelimit:rule limit=1 per=1m in a block comment has no effect` */ /*
Blocked is documented in a block.

//ratelimit:rule limit=1 per=1m
*/
type Blocked interface{ M() error }
