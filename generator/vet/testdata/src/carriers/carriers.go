// Package carriers chooses a Sender. It knows no limiters: who imports it wraps what it returns.
package carriers

import (
	"context"

	"sms"
)

type carrier struct{ name string } // want carrier:"bare Sender"

func (c *carrier) SendCode(ctx context.Context, phone string) error { return nil }
func (c *carrier) Close() error                                     { return nil }

func New(name string) sms.Sender {
	if name == "" {
		return sms.NewGateway()
	}
	return &carrier{name}
}

func first() sms.Sender { return &carrier{"first"} } // want `this sms.Sender has no limits; return what sms.NewLimitedSender returns`

func try(ctx context.Context) error { return first().SendCode(ctx, "1") }
