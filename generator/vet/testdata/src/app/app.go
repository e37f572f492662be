// Package app composes what others declare.
package app

import (
	"context"

	"provider"
	"sms"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type server struct {
	*sms.Gateway
	name string
}

func (s server) handle(ctx context.Context) {
	s.SendCode(ctx, "1") // want `the limits of sms.Sender do not reach this SendCode on server; use what sms.NewLimitedSender returns`
}

func run(ctx context.Context, limiter *ratelimit.Limiter) {
	gateway, client := sms.NewGateway(), newClient()
	sender := sms.NewLimitedSender(client, limiter)
	sender.SendCode(ctx, "1")
	gateway.SendCode(ctx, "1") // want `the limits of sms.Sender do not reach this SendCode on \*sms.Gateway`
	client.SendCode(ctx, "1")  // want `the limits of sms.Sender do not reach this SendCode on \*provider.Client`
	client.Close()
	sms.NewLocal().SendCode(ctx, "1") // want `do not reach this SendCode on \*sms.local`
}

func newClient() *provider.Client { return provider.New() }

func newSender() sms.Sender { return provider.New() } // is passed on to a wrapper, as the type is in run

// NewSender is called by others, who cannot see what it returns.
func NewSender() sms.Sender { return provider.New() } // want `this sms.Sender has no limits`

func convert(ctx context.Context, limiter *ratelimit.Limiter) {
	sms.NewLimitedSender(sms.Sender(sms.NewGateway()), limiter)
	w := sms.Sender(sms.NewGateway())
	w.SendCode(ctx, "1")                            // want `do not reach this SendCode on w, which holds a sms.Gateway`
	sms.Sender(sms.NewGateway()).SendCode(ctx, "1") // want `on sms.Sender\(sms.NewGateway\(\)\), which holds a sms.Gateway`
	register(sms.Sender(sms.NewGateway()))          // may wrap it
}

var _ = sms.Sender(sms.NewGateway())

func register(any) {}

func NewPlain() sms.Sender {
	return sms.NewGateway() // want `this sms.Sender has no limits; return what sms.NewLimitedSender returns`
}
