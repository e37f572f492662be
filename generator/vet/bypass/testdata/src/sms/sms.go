// Package sms declares an annotated interface and has an implementation of it.
package sms

import (
	"context"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type Sender interface { // want Sender:"limits SendCode"
	//ratelimit:rule key="{phone}" limit=1 per=1m
	SendCode(ctx context.Context, phone string) error

	Close() error
}

// Gateway is a bare implementation.
type Gateway struct{ url string }

func NewGateway(url string) *Gateway { return &Gateway{url} }

func NewLimitedGateway(limiter *ratelimit.Limiter) *LimitedSender {
	return NewLimitedSender(&Gateway{}, limiter)
}

// Open returns a bare implementation as the interface: in this package, nothing is reported.
func Open(url string) Sender { return &Gateway{url} } // want Open:"returns bare values"

func (g *Gateway) SendCode(ctx context.Context, phone string) error { return nil }
func (g *Gateway) Close() error                                     { return nil }

// SenderFunc is a func that implements Sender.
type SenderFunc func(ctx context.Context, phone string) error

func (f SenderFunc) SendCode(ctx context.Context, phone string) error { return f(ctx, phone) }
func (SenderFunc) Close() error                                       { return nil }
