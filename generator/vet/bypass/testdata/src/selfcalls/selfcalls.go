// Package selfcalls has methods that call limited methods on their receivers, which are never the wrapper.
package selfcalls

import (
	"context"

	"repo"
	"sms"
)

type Client struct{ next *Client } // want Client:"limits Fetch, Put, FetchTwice"

//ratelimit:rule limit=1 per=1s
func (c *Client) Fetch(ctx context.Context, url string) error { return nil }

//ratelimit:rule limit=1 per=1s
func (c *Client) Put(ctx context.Context, url string) error { return nil }

func (c *Client) FetchAll(ctx context.Context, urls []string, do func(func(context.Context, string) error)) error {
	for _, url := range urls {
		if err := c.Fetch(ctx, url); err != nil { // want `Fetch of the receiver has no limits, as only what NewLimitedClient returns has them; give Client a guard, or end this line with //ratelimit:bare and a reason`
			return err
		}
		go func() { _ = (c).Put(ctx, url) }() // want `Put of the receiver has no limits`
	}
	do(c.Fetch)                // want `Fetch of the receiver has no limits`
	_ = c.Fetch(ctx, "health") //ratelimit:bare health checks do not count
	c.idle()
	return c.next.Fetch(ctx, "")
}

//ratelimit:rule limit=1 per=1s
func (c *Client) FetchTwice(ctx context.Context, url string) error {
	return c.Fetch(ctx, url) // want `Fetch of the receiver has no limits`
}

func (c *Client) idle() {}

// Other uses other clients than its receiver.
func (c *Client) Other(ctx context.Context, other *Client) error {
	if c := other; c != nil {
		return c.Fetch(ctx, "")
	}
	return other.Fetch(ctx, "")
}

// Next changes its receiver.
func (c *Client) Next(ctx context.Context) error {
	for ; c != nil; c = c.next {
		if err := c.Fetch(ctx, ""); err != nil {
			return err
		}
	}
	return nil
}

// Each changes its receiver in a loop.
func (c *Client) Each(ctx context.Context, all []*Client) {
	for _, c = range all {
		_ = c.Fetch(ctx, "")
	}
}

// Queue has one rule for all of its methods. A call takes one permit, whatever it calls.
//
//ratelimit:rule limit=1 per=1s
type Queue struct{} // want Queue:"limits Add, AddAll"

func (q Queue) Add(ctx context.Context) error { return nil }

// Unlimited is a method of the queue itself.
func (q Queue) Unlimited() *Queue { return &q }

func (q Queue) AddAll(ctx context.Context) error { return q.Add(ctx) }

// Gateway is used as a sender.
type Gateway struct{}

var _ sms.Sender = Gateway{}

func (g Gateway) SendCode(ctx context.Context, phone string) error { return nil }
func (g Gateway) Close() error                                     { return nil }

func (g Gateway) SendAll(ctx context.Context, phones ...string) error {
	for _, phone := range phones {
		_ = g.SendCode(ctx, phone) // want `SendCode of the receiver has no limits, as only what sms.NewLimitedSender returns has them; give Gateway a guard`
	}
	return g.Close()
}

// Table is used as a repository, whose methods have a rule each.
type Table struct{}

var _ repo.Repo[string, int] = Table{}

func (t Table) Get(key string) (int, error) { return 0, nil }

func (t Table) Put(key string, value int) error {
	_, err := t.Get(key) // want `Get of the receiver has no limits, as only what repo.NewLimitedRepo returns has them; give Table a guard`
	return err
}

// Unrelated has the methods of a sender, and is used as none.
type Unrelated struct{ Gateway }

func (u *Unrelated) SendAll(ctx context.Context) error { return u.SendCode(ctx, "") }

// Retrying is a decorator.
type Retrying struct{ next sms.Sender }

func (r *Retrying) SendCode(ctx context.Context, phone string) error {
	return r.next.SendCode(ctx, phone)
}
func (r *Retrying) Close() error                        { return nil }
func (r *Retrying) SendTwice(ctx context.Context) error { return r.SendCode(ctx, "") }

var _ sms.Sender = &Retrying{}
