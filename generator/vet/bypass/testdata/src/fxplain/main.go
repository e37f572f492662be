// Command fxplain provides the bare implementation to a container.
package main

import (
	"login"
	"sms"
	"twilio"

	"go.uber.org/fx"
)

func main() {
	fx.New(
		fx.Provide(
			twilio.New,
			newSender,
			func(c *twilio.Client) sms.Sender { return c }, // want `\*twilio.Client is used as sms.Sender`
			login.New,
		),
		fx.Provide(fx.Annotate(twilio.New, fx.As(new(sms.Sender)))), // reflection: not found
		fx.Supply(sms.NewGateway("")),
		fx.Invoke(func(*login.Service) {}),
	).Run()
}

func newSender(c *twilio.Client) (sms.Sender, error) {
	return c, nil // want `\*twilio.Client is used as sms.Sender`
}
