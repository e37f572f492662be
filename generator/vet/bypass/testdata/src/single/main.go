// Command single declares everything that it uses.
package main

import (
	"context"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type sender interface { // want sender:"limits Send"
	//ratelimit:rule limit=1 per=1m
	Send(ctx context.Context) error
}

type gateway struct{}

func (gateway) Send(ctx context.Context) error { return nil }

type service struct{ sender sender }

func main() {
	limiter := ratelimit.New()
	_ = service{newLimitedSender(gateway{}, limiter)}
	_ = service{gateway{}}                                                       // want `gateway is used as sender without its rate limits; wrap it with newLimitedSender`
	_ = service{newLimitedSender(newLimitedSender(gateway{}, limiter), limiter)} // want `this is limited already; a second newLimitedSender takes the permits of each call twice`
	_ = newLimitedSender(sender(newLimitedSender(gateway{}, limiter)), limiter)  // want `this is limited already`
	limited := newLimitedSender(gateway{}, limiter)
	_ = newLimitedSender(limited, limiter) // want `this is limited already`
	_ = newLimitedSender(limited, limiter) //ratelimit:bare two budgets
}
