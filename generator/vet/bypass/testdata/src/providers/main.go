// Command providers gets senders from interfaces, methods and containers, and wraps them.
package main

import (
	"sync"

	"login"
	"registry"
	"sms"
	"twilio"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type provider interface {
	Open(token string) (sms.Sender, error)
}

type twilioProvider struct{}

func (twilioProvider) Open(token string) (sms.Sender, error) { return twilio.Open(token) }

type smsProvider struct{ url string }

func (p smsProvider) Open(token string) (s sms.Sender, err error) {
	s = sms.NewGateway(p.url)
	return
}

var known = map[string]provider{"twilio": twilioProvider{}, "sms": smsProvider{}}

var once = sync.OnceValue(func() sms.Sender { return twilio.New("") })

// local is a container of this package.
type local[T any] struct{ all []T }

func (l *local[T]) add(v T)  { l.all = append(l.all, v) }
func (l *local[T]) first() T { return l.all[0] }

type config struct {
	open func(token string) sms.Sender
}

type app struct {
	cfg     config
	limiter *ratelimit.Limiter
	spare   *twilio.Client
}

func (a *app) primary() sms.Sender { return a.spare }

func (a *app) secondary() sms.Sender {
	return a.spare // want `\*twilio.Client is used as sms.Sender`
}

func openTwilio(token string) sms.Sender { return twilio.New(token) }

func (a *app) run(name string) error {
	s, err := known[name].Open("")
	if err != nil {
		return err
	}
	login.New(sms.NewLimitedSender(s, a.limiter))
	login.New(sms.NewLimitedSender(once(), a.limiter))
	login.New(sms.NewLimitedSender(a.primary(), a.limiter))
	login.New(a.secondary())
	login.New(sms.NewLimitedSender(a.cfg.open(""), a.limiter))
	return nil
}

func main() {
	a := &app{cfg: config{open: openTwilio}}
	a.run("sms")

	wrapped := registry.New[sms.Sender]()
	wrapped.Add("twilio", twilio.New(""))
	login.New(sms.NewLimitedSender(wrapped.Get("twilio"), a.limiter))

	bare := registry.New[sms.Sender]()
	bare.Add("twilio", twilio.New("")) // want `\*twilio.Client is used as sms.Sender`
	login.New(bare.Get("twilio"))

	list := &local[sms.Sender]{}
	list.add(twilio.New(""))
	login.New(sms.NewLimitedSender(list.first(), a.limiter))

	var wg sync.WaitGroup
	results := make(chan sms.Sender)
	wg.Go(func() { results <- twilio.New("") })
	for s := range results {
		login.New(sms.NewLimitedSender(s, a.limiter))
	}
}
