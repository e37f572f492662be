// Package held has bare values in variables of the interface.
package held

import (
	"context"

	"sms"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type twilio struct{} // want twilio:"bare Sender"

func newTwilio() (*twilio, error) { return &twilio{}, nil }

func (*twilio) SendCode(ctx context.Context, phone string) error { return nil }
func (*twilio) Close() error                                     { return nil }

var (
	byDefault sms.Sender = &twilio{}
	Exported  sms.Sender = &twilio{}
	replaced  sms.Sender = &twilio{}
	never     sms.Sender
	anything  any = &twilio{}
)

func wire(limiter *ratelimit.Limiter) { replaced = sms.NewLimitedSender(replaced, limiter) }

func bare(ctx context.Context, ok bool) {
	var s sms.Sender = &twilio{}
	if ok {
		s = sms.NewGateway()
	}
	s.SendCode(ctx, "1") // want `the limits of sms.Sender do not reach this SendCode on s, which holds a sms.Gateway; use what sms.NewLimitedSender returns`
	s.Close()
	var second sms.Sender
	second, err := newTwilio()
	second.SendCode(ctx, "1") // want `on second, which holds a twilio`
	third := s
	func() { third.SendCode(ctx, "1") }() // want `on third, which holds a sms.Gateway`
	send := (byDefault).SendCode          // want `on \(byDefault\), which holds a twilio`
	send(ctx, err.Error())
	s = nil
	fourth := sms.Sender(&twilio{})
	fourth.SendCode(ctx, "1") // want `on fourth, which holds a twilio`
}

func mixed(ctx context.Context, given sms.Sender, all []sms.Sender, limiter *ratelimit.Limiter) {
	var s sms.Sender = &twilio{}
	if limiter != nil {
		s = sms.NewLimitedSender(s, limiter)
	}
	s.SendCode(ctx, "1")
	if given == nil {
		given = &twilio{}
	}
	given.SendCode(ctx, "1")
	var last, set, twin sms.Sender = &twilio{}, &twilio{}, given
	for _, last = range all {
		last.SendCode(ctx, "1")
	}
	for _, each := range all {
		each.SendCode(ctx, "1")
		each = &twilio{}
	}
	fill(&set)
	set.SendCode(ctx, "1")
	twin.SendCode(ctx, "1")
	turn := byDefault
	swap := turn
	turn = swap
	turn.SendCode(ctx, "1")
	switch v := anything.(type) {
	case sms.Sender:
		v.SendCode(ctx, "1")
		v = &twilio{}
	}
	Exported.SendCode(ctx, "1")
	sms.Default.SendCode(ctx, "1")
	replaced.SendCode(ctx, "1")
	never.SendCode(ctx, "1")
	var narrow codes = &twilio{} // is no Sender, which could be wrapped
	narrow.SendCode(ctx, "1")
}

type codes interface {
	SendCode(ctx context.Context, phone string) error
}

func fill(to *sms.Sender) {}

type service struct {
	plain, given, limited sms.Sender
	Open                  sms.Sender
}

func newService(given sms.Sender, limiter *ratelimit.Limiter) *service {
	s := &service{plain: &twilio{}, given: given, Open: &twilio{}}
	s.limited = sms.NewLimitedSender(s.plain, limiter)
	return s
}

func (s *service) send(ctx context.Context) {
	s.plain.SendCode(ctx, "1") // want `on s.plain, which holds a twilio`
	s.given.SendCode(ctx, "1")
	s.limited.SendCode(ctx, "1")
	s.Open.SendCode(ctx, "1")
}

type pair struct {
	sender sms.Sender
	other  int
}

func pairs(ctx context.Context) {
	for _, p := range []*pair{{&twilio{}, 1}} {
		p.sender.SendCode(ctx, "1") // want `on p.sender, which holds a twilio`
	}
}

type from struct{ sender sms.Sender }
type to struct{ sender sms.Sender }

func convert(ctx context.Context, f from) {
	t := to{&twilio{}}
	t = to(f)
	t.sender.SendCode(ctx, "1")
}

// failover is a decorator: it may well be wrapped itself, with all that it consists of.
type failover struct {
	sms.Sender
	second sms.Sender
	third  *twilio
	queue  queue
}

type queue struct{ next sms.Sender }

func newFailover(next sms.Sender) sms.Sender {
	return &failover{next, &twilio{}, &twilio{}, queue{&twilio{}}}
}

func (f *failover) SendCode(ctx context.Context, phone string) error {
	var local sms.Sender = &twilio{}
	local.SendCode(ctx, phone)
	f.third.SendCode(ctx, phone)
	return f.second.SendCode(ctx, phone)
}

func (q queue) run(ctx context.Context) { q.next.SendCode(ctx, "1") }

// limited wraps what it gets as a type parameter.
func limited[S sms.Sender](next S, limiter *ratelimit.Limiter) sms.Sender {
	return sms.NewLimitedSender(next, limiter)
}

func generic(ctx context.Context, limiter *ratelimit.Limiter) {
	limited(&twilio{}, limiter).SendCode(ctx, "1")
	sms.NewLimitedSender(retrying[*twilio]{}, limiter).SendCode(ctx, "1")
}

type retrying[S sms.Sender] struct{ next S }

func (r retrying[S]) SendCode(ctx context.Context, phone string) error {
	return r.next.SendCode(ctx, phone)
}

func (r retrying[S]) Close() error { return nil }
