package decorators

import (
	"context"

	"sms"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// async is wrapped as a whole, with the workers that send.
type async struct { // want async:"bare Sender"
	closer
	workers []*worker
	jobs    chan string
}

type worker struct{ simple *simple }

func (w *worker) run(ctx context.Context, jobs chan string) {
	for phone := range jobs {
		w.simple.SendCode(ctx, phone)
	}
}

func (a *async) SendCode(ctx context.Context, phone string) error {
	a.jobs <- phone
	return nil
}

func newAsync(ctx context.Context, s *simple) (*async, error) {
	a := &async{jobs: make(chan string)}
	go func() { s.SendCode(ctx, <-a.jobs) }()
	return a, nil
}

func twice(s *simple) sms.Sender {
	return senderFunc(func(ctx context.Context, phone string) error {
		s.SendCode(ctx, phone)
		return s.SendCode(ctx, phone)
	})
}

func adapt(ctx context.Context, s *simple, limiter *ratelimit.Limiter) error {
	sms.NewLimitedSender(senderFunc(s.SendCode), limiter)
	sms.NewLimitedSender(sms.SenderFunc(s.SendCode), limiter)
	sms.NewLimitedSender(&funcs{send: s.SendCode}, limiter)
	_ = []any{job{s.SendCode}, s.SendCode} // want `SendCode on \*simple` `SendCode on \*simple`
	return job{s.SendCode}.run(ctx, "1") // want `do not reach this SendCode on \*simple`
}

// job is no Sender.
type job struct {
	run func(ctx context.Context, phone string) error
}

// program is pointed back to by what it consists of.
type program struct {
	handler *handler
	simple  *simple
}

type handler struct { // want handler:"bare Sender"
	closer
	program *program
}

func (h *handler) SendCode(ctx context.Context, phone string) error { return nil }

func (p *program) run(ctx context.Context) {
	p.handler.SendCode(ctx, "1") // want `do not reach this SendCode on \*handler`
	p.simple.SendCode(ctx, "1")  // want `do not reach this SendCode on \*simple`
}
