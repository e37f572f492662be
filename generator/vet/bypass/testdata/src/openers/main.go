// Command openers uses what functions of another package return as senders.
package main

import (
	"context"

	"login"
	"opens"
	"sms"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

func backup() sms.Sender { return opens.Plain() }

func main() {
	limiter := ratelimit.New()
	login.New(opens.Plain()) // want `opens.Plain returns a bare sms.Sender; wrap it with sms.NewLimitedSender`

	sender, err := opens.WithError("") // want `opens.WithError returns a bare sms.Sender`
	if err == nil {
		login.New(sender)
	}
	wrapped, _ := opens.WithError("")
	login.New(sms.NewLimitedSender(wrapped, limiter))
	login.New(sms.NewLimitedSender(backup(), limiter))

	pool := &opens.Pool{}
	login.New(pool.Get())                          // want `pool.Get returns a bare sms.Sender`
	_ = opens.Plain().SendCode(context.Background(), "") // want `opens.Plain returns a bare sms.Sender`
	_ = opens.Plain().Close()
	_ = opens.Plain()
	login.New(opens.Plain()) //ratelimit:bare operators are not limited
	login.New(opens.Decorated(wrapped))
	login.New(opens.Mixed(nil))
	login.New(opens.Named())
	login.New(opens.OnPurpose())
	login.New(opens.ForAll(nil)())
}
