// Command wireapp is wired by generated code.
package main

import (
	"sms"
	"twilio"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

func newLimiter() *ratelimit.Limiter { return ratelimit.New() }

func provideSender(c *twilio.Client, l *ratelimit.Limiter) sms.Sender {
	return sms.NewLimitedSender(c, l)
}

func provideAll() []sms.Sender {
	return []sms.Sender{provideSender(nil, nil), twilio.New("")} // want `\*twilio.Client is used`
}

func main() { initialize("") }
