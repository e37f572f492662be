// Package opens has functions that return senders. It calls no generated constructor, so nothing is reported here.
package opens

import (
	"errors"

	"retry"
	"sms"
	"twilio"
)

func Plain() sms.Sender { return twilio.New("") } // want Plain:"returns bare values"

func WithError(token string) (sms.Sender, error) { // want WithError:"returns bare values"
	if token == "" {
		return nil, errors.New("no token")
	}
	return twilio.Open(token)
}

func Decorated(next sms.Sender) sms.Sender { return retry.New(next) }

func Mixed(sender sms.Sender) sms.Sender {
	if sender == nil {
		return twilio.New("")
	}
	return sender
}

func Named() (sender sms.Sender) {
	if sender = Decorated(nil); sender == nil {
		return twilio.New("")
	}
	return
}

func OnPurpose() sms.Sender {
	return twilio.New("") //ratelimit:bare operators are not limited
}

func ForAll(use func(sms.Sender)) func() sms.Sender {
	return func() sms.Sender { return twilio.New("") }
}

// Pool makes senders.
type Pool struct{ token string }

func (p *Pool) Get() sms.Sender { return twilio.New(p.token) } // want Get:"returns bare values"
