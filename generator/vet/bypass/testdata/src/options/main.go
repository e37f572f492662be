// Command options passes bare values, in functional options and in a struct, to functions that wrap them.
package main

import (
	"shop"
	"sms"
	"twilio"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

func main() {
	limiter := ratelimit.New()
	shop.New(twilio.New(""), limiter)
	shop.Build(limiter,
		shop.WithSender(twilio.New("")),
		shop.WithAlarm(twilio.New("")), // want `\*twilio.Client is used as sms.Sender`
		shop.WithLog(nil),
	)
	shop.Open(shop.Config{
		Sender: sms.NewGateway(""),
		Alarm:  sms.NewGateway(""), // want `\*sms.Gateway is used as sms.Sender`
	}, limiter)
	cfg := shop.Config{}
	cfg.Sender = twilio.New("")
	cfg.Alarm = twilio.New("") // want `\*twilio.Client is used`
	shop.Open(cfg, limiter)
	newServer(withSender(sms.NewGateway("")))         // want `\*sms.Gateway is used`
	newServer(func(s *server) { s.sender = gateway }) // want `\*sms.Gateway is used`
}

var gateway = sms.NewGateway("")

type server struct{ sender sms.Sender }

func withSender(s sms.Sender) func(*server) { return func(to *server) { to.sender = s } }

func newServer(opts ...func(*server)) *server {
	s := &server{sender: twilio.New("")} // want `\*twilio.Client is used`
	for _, o := range opts {
		o(s)
	}
	return s
}
