// Command fxlimited wraps a value that a container provides.
package main

import (
	"login"
	"sms"
	"twilio"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"go.uber.org/fx"
)

func main() {
	fx.New(
		providers,
		fx.Decorate(func(s sms.Sender, l *ratelimit.Limiter) sms.Sender { return sms.NewLimitedSender(s, l) }),
		fx.Invoke(start),
	).Run()
}

var providers = fx.Options(
	fx.Provide(ratelimit.New, login.New, newSender),
	fx.Provide(func(c *twilio.Client) sms.Sender { return c }),
)

func newSender() (sms.Sender, error) {
	c, err := twilio.Open("")
	if err != nil {
		return nil, err
	}
	return c, nil
}

func start(*login.Service) {
	login.New(twilio.New("")) // want `\*twilio.Client is used`
}
