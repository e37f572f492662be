// Command tables has tables of senders and handlers, and passes senders on in many other ways.
package main

import (
	"context"

	"sms"
	"twilio"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

var byCountry = map[string]sms.Sender{
	"CN": sms.NewGateway(""), // want `\*sms.Gateway is used`
	"US": twilio.New(""),     // want `\*twilio.Client is used`
	"FR": nil,
}

var inOrder = []sms.Sender{twilio.New(""), nil, 3: &sms.Gateway{}} // want `\*twilio.Client is used` `\*sms.Gateway is used`

var pair = [2]sms.Sender{sms.NewLimitedSender(twilio.New(""), nil)}

type route struct {
	name   string
	sender sms.Sender
}

var routes = []route{
	{"a", sms.NewLimitedSender(twilio.New(""), nil)},
	{"b", twilio.New("")}, // want `\*twilio.Client is used`
}

var pointers = []*route{{sender: twilio.New("")}} // want `\*twilio.Client is used`

var factories = map[string]func(token string) sms.Sender{
	"twilio": func(token string) sms.Sender { return twilio.New(token) }, // want `\*twilio.Client is used`
	"sms":    sms.Open,                                                   // returns an interface: not found
}

var clients = []*twilio.Client{twilio.New("")} // concrete until it is converted

type handler struct {
	send func(ctx context.Context, s sms.Sender) error
}

var seen = map[sms.Sender]bool{twilio.New(""): true} // want `\*twilio.Client is used`

func main() {
	byCountry["GB"] = twilio.New("")            // want `\*twilio.Client is used`
	all := append(inOrder, twilio.New(""), nil) // want `\*twilio.Client is used`
	all = append(all, inOrder...)
	for i, c := range clients {
		all[i] = c // want `\*twilio.Client is used`
	}
	ch := make(chan sms.Sender, 1)
	ch <- twilio.New("") // want `\*twilio.Client is used`
	h := handler{send: func(ctx context.Context, s sms.Sender) error { return s.SendCode(ctx, "1") }}
	h.send(context.Background(), twilio.New(""))                         // want `\*twilio.Client is used`
	each(twilio.New(""), sms.NewLimitedSender(nil, nil), &sms.Gateway{}) // want `\*twilio.Client is used` `\*sms.Gateway is used`
	each(all...)
	each()
	each(both()) // want `\*twilio.Client is used` `\*sms.Gateway is used`
	func(s sms.Sender) {}(twilio.New(""))    // want `\*twilio.Client is used`
	register[sms.Sender](twilio.New(""))     // want `\*twilio.Client is used`
	register(twilio.New(""))                 // a type argument: not found
	var _, s = 1, sms.Sender(twilio.New("")) // want `\*twilio.Client is used`
	_ = s
	if t, ok := s.(*twilio.Client); ok && s == t {
		return
	}
	print(len(all), cap(ch))
}

func each(all ...sms.Sender) {}

func both() (*twilio.Client, *sms.Gateway) { return nil, nil }

// replace wraps the target of a pointer.
func replace(limiter *ratelimit.Limiter) {
	var s sms.Sender
	p := &s
	*p = twilio.New("")
	sms.NewLimitedSender(*p, limiter)
}

func register[S sms.Sender](s S) {}

// wrapAll wraps elements from slices, maps and channels.
func wrapAll(limiter *ratelimit.Limiter) map[string]sms.Sender {
	bare := map[string]sms.Sender{"a": twilio.New("")}
	bare["b"] = sms.NewGateway("")
	list := []sms.Sender{twilio.New("")}
	list = append(list, twilio.New(""))
	queue := make(chan sms.Sender, 1)
	queue <- twilio.New("")
	sms.NewLimitedSender(<-queue, limiter)
	limited := map[string]sms.Sender{}
	for name, s := range bare {
		limited[name] = sms.NewLimitedSender(s, limiter)
	}
	for _, s := range list {
		limited[""] = sms.NewLimitedSender(s, limiter)
	}
	return limited
}
