// Package limits has a middleware that wraps.
package limits

import (
	"middleware"
	"sms"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

func By(limiter *ratelimit.Limiter) middleware.Func { // want By:"wrapped" limiter:"wrapped"
	return func(next sms.Sender) sms.Sender { // want next:"wrapped"
		return sms.NewLimitedSender(next, limiter)
	}
}
