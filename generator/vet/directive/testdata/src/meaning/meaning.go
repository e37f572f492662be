package meaning

import (
	"context"
	"io"
	"iter"
	"net/http"
	"strings"
)

type Sender interface {
	/* want `unknown name phon; did you mean phone\?` */ //ratelimit:rule key="{phon}" limit=1 per=1m
	/* want `unknown function lowr; did you mean lower\?` */ //ratelimit:rule key="{lowr(phone)}" limit=1 per=1m
	/* want `unexpected end of the expression` */ //ratelimit:rule limit=1 per=1m when=!
	/* want `per: a rule needs a window: per=1m, cron=` */ //ratelimit:rule limit=1
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

type Streams interface {
	/* want `the permit comes back when Open returns, while result0 goes on; write hold=result0, or end the line of Open` */ //ratelimit:rule algorithm=concurrency limit=3
	Open(ctx context.Context) (io.ReadCloser, error)

	/* want `while all goes on` */ //ratelimit:rule algorithm=concurrency limit=3
	All(ctx context.Context) (all iter.Seq[int], err error)

	/* want `while resp goes on` */ //ratelimit:rule algorithm=concurrency limit=3
	Do(r *http.Request) (resp *http.Response, err error)

	//ratelimit:rule algorithm=concurrency limit=3 hold=result0
	Held(ctx context.Context) (io.ReadCloser, error)

	//ratelimit:rule algorithm=concurrency limit=3
	Dial(ctx context.Context) (io.ReadCloser, error) //ratelimit:bare only connecting is dear

	//ratelimit:rule algorithm=concurrency limit=3
	Read(ctx context.Context, from io.ReadCloser) ([]byte, error)

	//ratelimit:rule limit=3 per=1m
	Rate(ctx context.Context) (io.ReadCloser, error)
}

// Promoting has a method of another type, to which its rule cannot apply. The generator notes it, and there is no place for skip.
//
//ratelimit:rule limit=3 per=1m
type Promoting struct{ quiet }

type quiet struct{}

func (quiet) Quiet() {}

func (Promoting) Loud() error { return nil }
