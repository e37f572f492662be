package meaning

import (
	"context"
	"strings"
)

type Sender interface {
	/* want `unknown name phon; did you mean phone\?` */ //ratelimit:rule key="{phon}" limit=1 per=1m
	/* want `unknown function lowr; did you mean lower\?` */ //ratelimit:rule key="{lowr(phone)}" limit=1 per=1m
	/* want `unexpected end of the expression` */ //ratelimit:rule limit=1 per=1m when=!
	/* want `per: a rule needs a window: per=1m, or cron=` */ //ratelimit:rule limit=1
	/* want `warmup` */ //ratelimit:rule limit=1 per=1m warmup=10s name=w
	/* want `cost` */ //ratelimit:rule limit=1 per=1m cost=2 name=c
	//ratelimit:rule key="{userID(ctx)}:{phone}" limit=3 per=1m
	Send(ctx context.Context, phone string, b *strings.Builder) error

	/* want `Close returns no error` */ //ratelimit:rule limit=1 per=1m
	Close()
}

type Struct struct {
	/* want `n is not a func` */ //ratelimit:rule limit=1 per=1m
	n                         int
	//ratelimit:rule limit=1 per=1m
	Send func() error
}

/* want `the rule does not apply to Len: only methods that return an error` */ //ratelimit:rule limit=1 per=1m
type Counter interface {
	Add(ctx context.Context) error
	Len() int
}
