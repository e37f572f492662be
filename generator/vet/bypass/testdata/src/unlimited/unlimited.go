// Package unlimited takes values out of their wrappers.
package unlimited

import (
	"context"

	"selfcalls"
	"sms"
)

// pool embeds a wrapper.
type pool struct{ *sms.LimitedSender }

// plan has an Unlimited that is no wrapper's.
type plan struct{}

func (plan) Unlimited() sms.Sender { return nil }

func send(ctx context.Context, sender *sms.LimitedSender, client *selfcalls.LimitedClient, queue *selfcalls.LimitedQueue, p pool) error {
	_ = sender.Unlimited().SendCode(ctx, "")      // want `what Unlimited returns has no rate limits; use the wrapper, or end this line with //ratelimit:bare and a reason`
	_ = client.Unlimited()                        // want `what Unlimited returns has no rate limits`
	_ = p.Unlimited                               // want `what Unlimited returns has no rate limits`
	_ = (*sms.LimitedSender).Unlimited(sender)    // want `what Unlimited returns has no rate limits`
	_ = sender.Unlimited().SendCode(ctx, "admin") //ratelimit:bare operators are not limited
	_ = plan{}.Unlimited()
	var any any = sender
	_ = any.(interface{ Unlimited() sms.Sender }).Unlimited() // want `what Unlimited returns has no rate limits`
	_ = any.(interface{ Unlimited() int }).Unlimited()
	return queue.Unlimited().Add(ctx)
}
