// Package retry has a decorator.
package retry

import (
	"context"

	"sms"
)

type Sender struct{ next sms.Sender }

func New(next sms.Sender) *Sender { return &Sender{next} }

func (s *Sender) SendCode(ctx context.Context, phone string) error {
	return s.next.SendCode(ctx, phone)
}
func (s *Sender) Close() error { return s.next.Close() }

// Of is a decorator of a value of any type.
type Of[S sms.Sender] struct{ Next S }

func (o Of[S]) SendCode(ctx context.Context, phone string) error { return o.Next.SendCode(ctx, phone) }
func (o Of[S]) Close() error                                     { return o.Next.Close() }
