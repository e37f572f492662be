// Package middleware applies middleware to senders.
package middleware

import "sms"

// Func is a middleware.
type Func func(sms.Sender) sms.Sender

// Stack is a list of middleware.
type Stack []Func

func (s Stack) Then(sender sms.Sender) sms.Sender { return Chain(sender, s...) }

// Chain applies the last middleware first.
func Chain(sender sms.Sender, all ...Func) sms.Sender {
	for i := len(all) - 1; i >= 0; i-- {
		sender = all[i](sender)
	}
	return sender
}

// Named returns a middleware that does nothing.
func Named(name string) Func { return func(next sms.Sender) sms.Sender { return next } }
