// Package decorators has decorators of several shapes: none is bare, as what is in them may be limited. It has also functions that
// make bare values.
package decorators

import (
	"context"

	"sms"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type closer struct{}

func (closer) Close() error { return nil }

// senderFunc is to Sender what http.HandlerFunc is to http.Handler.
type senderFunc func(ctx context.Context, phone string) error

func (f senderFunc) SendCode(ctx context.Context, phone string) error { return f(ctx, phone) }
func (senderFunc) Close() error                                       { return nil }

func WithLog(next sms.Sender) sms.Sender {
	return senderFunc(func(ctx context.Context, phone string) error { return next.SendCode(ctx, phone) })
}

type funcs struct {
	closer
	send func(ctx context.Context, phone string) error
}

func (f funcs) SendCode(ctx context.Context, phone string) error { return f.send(ctx, phone) }

func WithFuncs(next sms.Sender) sms.Sender { return funcs{send: next.SendCode} }

type balancer struct {
	closer
	providers []provider
}

type provider struct {
	sender sms.Sender
	weight int
}

func (p provider) try(ctx context.Context, phone string) error { return p.sender.SendCode(ctx, phone) }

func (b *balancer) SendCode(ctx context.Context, phone string) error {
	return b.providers[0].try(ctx, phone)
}

func Balanced(limiter *ratelimit.Limiter) sms.Sender {
	return sms.NewLimitedSender(&balancer{providers: []provider{{sms.NewGateway(), 1}}}, limiter)
}

type router struct {
	closer
	byRegion map[string]*named
	self     *router
}

type named struct {
	name   string
	sender *sms.LimitedSender
}

func (r *router) SendCode(ctx context.Context, phone string) error {
	return r.byRegion[phone[:3]].sender.SendCode(ctx, phone)
}

// simple has funcs and fields, and yet nothing that could be limited.
type simple struct { // want simple:"bare Sender"
	closer
	sign   func(phone string) string
	status map[string]*status
}

type status struct {
	last error
	all  []status
}

func (s *simple) SendCode(ctx context.Context, phone string) error { return nil }

func use(ctx context.Context, limiter *ratelimit.Limiter, b *balancer, r *router, s *simple) {
	b.SendCode(ctx, "1")
	r.SendCode(ctx, "1")
	s.SendCode(ctx, "1") // want `do not reach this SendCode on \*simple`

	within := sms.NewLimitedSender(&sms.Retrying{}, limiter)
	around := &sms.Retrying{}
	within.SendCode(ctx, "1")
	around.SendCode(ctx, "1")
}

func WithRetries() sms.Sender { return &sms.Retrying{} }

func newSimple() sms.Sender { return &simple{} } // want `this sms.Sender has no limits`

// open is called by who looks it up, and may wrap the Sender.
func open() sms.Sender { return &simple{} }

var openers = map[string]func() sms.Sender{"simple": open, "other": func() sms.Sender { return newSimple() }}
