// Command chains wraps by middleware, and sets the fields of decorators after their declaration.
package main

import (
	"context"

	"limits"
	"login"
	"middleware"
	"sms"
	"twilio"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type logging struct{ next sms.Sender }

func (l logging) SendCode(ctx context.Context, phone string) error {
	return l.next.SendCode(ctx, phone)
}
func (l logging) Close() error { return l.next.Close() }

func logged(next sms.Sender) sms.Sender { return logging{next} }

// forwarding holds a func, so that only its value says where calls go.
type forwarding struct {
	send func(ctx context.Context, phone string) error
}

func (f *forwarding) SendCode(ctx context.Context, phone string) error { return f.send(ctx, phone) }
func (f *forwarding) Close() error                                     { return nil }
func (f *forwarding) use(s sms.Sender)                                 { f.send = s.SendCode }

func plainly(next sms.Sender) sms.Sender { return logging{next} }

func limitBy(limiter *ratelimit.Limiter) middleware.Func {
	return func(next sms.Sender) sms.Sender { return sms.NewLimitedSender(next, limiter) }
}

func stackOf(sender sms.Sender) sms.Sender {
	return middleware.Stack{logged, func(next sms.Sender) sms.Sender { return sms.NewLimitedSender(next, ratelimit.New()) }}.Then(sender)
}

func chain(sender sms.Sender, all ...func(sms.Sender) sms.Sender) sms.Sender {
	for _, one := range all {
		sender = one(sender)
	}
	return sender
}

type stack []middleware.Func

func (s stack) then(sender sms.Sender) sms.Sender {
	for _, one := range s {
		sender = one(sender)
	}
	return sender
}

// retrying is a middleware that nothing else is applied with.
type retrying func(*twilio.Client) sms.Sender

func main() {
	limiter := ratelimit.New()
	limit := func(next sms.Sender) sms.Sender { return sms.NewLimitedSender(next, limiter) }
	limited := limit(twilio.New(""))

	login.New(chain(twilio.New(""), logged, limit))
	login.New(stack{logged, limit}.then(twilio.New("")))
	login.New(middleware.Chain(twilio.New(""), logged, limit))
	login.New(chain(twilio.New(""), func(next sms.Sender) sms.Sender { return sms.NewLimitedSender(next, limiter) }))
	login.New(middleware.Chain(twilio.New(""), logged, limitBy(limiter)))
	login.New(middleware.Chain(twilio.New(""), limits.By(limiter)))
	login.New(limits.By(limiter)(twilio.New("")))
	login.New(middleware.Chain(twilio.New(""), middleware.Named("x")))      // want `\*twilio.Client is used`
	login.New(middleware.Stack{middleware.Named("x")}.Then(twilio.New(""))) // want `\*twilio.Client is used`
	login.New(plainly(twilio.New("")))                                      // want `\*twilio.Client is used`
	login.New(stackOf(twilio.New("")))

	var set, late, bare forwarding
	set.send = limited.SendCode
	login.New(&set)
	late.use(limited)
	login.New(&late)
	bare.send = twilio.New("").SendCode
	login.New(&bare) // want `\*forwarding is used`

	made := &forwarding{}
	made.send = limited.SendCode
	login.New(made)
	other := &forwarding{}
	other.send = func(context.Context, string) error { return nil }
	login.New(other) // want `\*forwarding is used`
	config := struct{ sender *forwarding }{&forwarding{}}
	config.sender.send = limited.SendCode
	login.New(config.sender)
	login.New(retrying(func(*twilio.Client) sms.Sender { return limited })(nil))
}
