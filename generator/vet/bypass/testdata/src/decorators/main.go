// Command decorators has decorators of several shapes, around and inside the wrapper.
package main

import (
	"context"
	"log"
	"sync/atomic"

	"login"
	"retry"
	"sms"
	"twilio"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type closer struct{}

func (closer) Close() error { return nil }

// logging holds the next sender in a field.
type logging struct {
	next sms.Sender
	log  *log.Logger
}

func (l logging) SendCode(ctx context.Context, phone string) error {
	return l.next.SendCode(ctx, phone)
}
func (l logging) Close() error { return l.next.Close() }

// embedding embeds the next sender.
type embedding struct{ sms.Sender }

// narrow holds the next sender in a field of another interface type.
type narrow struct {
	closer
	next interface {
		SendCode(ctx context.Context, phone string) error
	}
}

func (n narrow) SendCode(ctx context.Context, phone string) error { return n.next.SendCode(ctx, phone) }

// funcs holds a method as a func.
type funcs struct {
	closer
	send func(ctx context.Context, phone string) error
}

func (f funcs) SendCode(ctx context.Context, phone string) error { return f.send(ctx, phone) }

// senderFunc is a func.
type senderFunc func(ctx context.Context, phone string) error

func (f senderFunc) SendCode(ctx context.Context, phone string) error { return f(ctx, phone) }
func (senderFunc) Close() error                                       { return nil }

// lazy creates the next sender when it is needed.
type lazy struct {
	closer
	open func() (sms.Sender, error)
}

func (l lazy) SendCode(ctx context.Context, phone string) error { return nil }

// balanced holds many senders, each inside another type.
type balanced struct {
	closer
	all map[string][]*weighted
}

type weighted struct {
	sender *sms.LimitedSender
	weight int
	in     *balanced
}

func (b *balanced) SendCode(ctx context.Context, phone string) error { return nil }

// swapped holds the next sender in a type of another package.
type swapped struct {
	closer
	current atomic.Pointer[sms.Sender]
}

func (s *swapped) SendCode(ctx context.Context, phone string) error { return nil }

// failover also holds a bare sender. It may be wrapped as a whole.
type failover struct {
	closer
	first  sms.Sender
	backup *twilio.Client
}

func (f failover) SendCode(ctx context.Context, phone string) error { return nil }

// counted holds a decorator of another package.
type counted struct {
	closer
	inner *retry.Sender
}

func (c counted) SendCode(ctx context.Context, phone string) error {
	return c.inner.SendCode(ctx, phone)
}

// delegating holds a bare sender of another package.
type delegating struct {
	closer
	inner *twilio.Client
}

func (d delegating) SendCode(ctx context.Context, phone string) error {
	return d.inner.SendCode(ctx, phone)
}

// mock is not a decorator: nothing in it can be the wrapper.
type mock struct {
	closer
	sent   map[string]int
	onSend func(phone string)
	parent *mock
}

func (m *mock) SendCode(ctx context.Context, phone string) error { return nil }

func main() {
	limiter := ratelimit.New()
	limited := sms.NewLimitedSender(twilio.New(""), limiter)
	login.New(logging{next: limited})
	login.New(embedding{limited})
	login.New(narrow{next: limited})
	login.New(funcs{send: limited.SendCode})
	login.New(senderFunc(limited.SendCode))
	login.New(sms.SenderFunc(limited.SendCode))
	login.New(lazy{open: func() (sms.Sender, error) { return limited, nil }})
	login.New(&balanced{})
	login.New(&swapped{})
	login.New(failover{first: limited})
	login.New(retry.New(limited))
	login.New(retry.Of[sms.Sender]{Next: limited})

	login.New(counted{inner: retry.New(limited)})
	login.New(delegating{})                        // want `delegating is used as sms.Sender`
	login.New(&mock{})                             // want `\*mock is used as sms.Sender`
	login.New(logging{next: twilio.New("")})       // want `\*twilio.Client is used`
	login.New(embedding{twilio.New("")})           // want `\*twilio.Client is used`
	login.New(retry.New(twilio.New("")))           // want `\*twilio.Client is used`
	login.New(retry.Of[*twilio.Client]{})          // want `retry.Of\[\*twilio.Client\] is used`
	login.New(narrow{next: twilio.New("")})        // want `narrow is used as sms.Sender`
	login.New(senderFunc(twilio.New("").SendCode)) // want `senderFunc is used as sms.Sender`

	// A decorator may also be inside the wrapper.
	login.New(sms.NewLimitedSender(logging{next: twilio.New("")}, limiter))
	login.New(sms.NewLimitedSender(retry.New(logging{next: &mock{}}), limiter))
	retried := retry.New(twilio.New(""))
	logged := logging{retried, nil}
	login.New(sms.NewLimitedSender(logged, limiter))

	var sender sms.Sender = twilio.New("")
	sender = logging{next: sender}
	sender = sms.NewLimitedSender(sender, limiter)
	sender = logging{next: sender}
	login.New(sender)
}

// limit is a helper that a program may use for all its wrappers.
func limit(s sms.Sender, limiter *ratelimit.Limiter) sms.Sender {
	return logging{next: sms.NewLimitedSender(s, limiter)}
}

func choose(name string) (s sms.Sender, err error) {
	switch name {
	case "twilio":
		return twilio.Open("")
	case "mock":
		return &mock{}, nil
	}
	s = sms.NewGateway("")
	return
}

func run(limiter *ratelimit.Limiter) error {
	s, err := choose("mock")
	if err != nil {
		return err
	}
	login.New(limit(s, limiter))
	login.New(limit(twilio.New(""), limiter))
	login.New(twilio.New("")) // want `\*twilio.Client is used`
	return nil
}
