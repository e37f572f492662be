// Package shop wraps its arguments, so that its callers pass bare values.
package shop

import (
	"context"

	"sms"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type Shop struct {
	sender sms.Sender
	log    func(string)
	spare  sms.Sender
}

func New(sender sms.Sender, limiter *ratelimit.Limiter) *Shop { // want sender:"wrapped"
	return &Shop{sender: sms.NewLimitedSender(sender, limiter)}
}

// Config has an exported field whose value is wrapped, and one whose value is not.
type Config struct {
	Sender sms.Sender // want Sender:"wrapped"
	Alarm  sms.Sender
}

func Open(cfg Config, limiter *ratelimit.Limiter) *Shop {
	return &Shop{sender: sms.NewLimitedSender(cfg.Sender, limiter), spare: cfg.Alarm}
}

// Option is a functional option.
type Option func(*options)

type options struct {
	sender sms.Sender // want sender:"wrapped"
	alarm  sms.Sender
	log    func(string)
}

func WithSender(s sms.Sender) Option { // want s:"wrapped"
	return func(o *options) { o.sender = s }
}

func WithAlarm(s sms.Sender) Option { return func(o *options) { o.alarm = s } }

func WithLog(log func(string)) Option { return func(o *options) { o.log = log } }

func Build(limiter *ratelimit.Limiter, opts ...Option) *Shop {
	o := options{sender: sms.NewGateway("")}
	for _, set := range opts {
		set(&o)
	}
	return &Shop{sender: sms.NewLimitedSender(o.sender, limiter), spare: o.alarm, log: o.log}
}

func (s *Shop) Run(ctx context.Context) error { return s.sender.SendCode(ctx, "1") }
