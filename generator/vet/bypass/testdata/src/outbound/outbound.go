// Package outbound annotates a struct, a struct of funcs and a func.
package outbound

import (
	"context"
	"net/http"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type Client struct{ http *http.Client } // want Client:"limits Fetch, Do"

func New() *Client { return &Client{} }

func NewLimited(limiter *ratelimit.Limiter) *LimitedClient { return NewLimitedClient(New(), limiter) }

//ratelimit:rule limit=1 per=1m
func (c *Client) Fetch(ctx context.Context, url string) error { return nil }

//ratelimit:rule limit=1 per=1m
func (c *Client) Do(r *http.Request) (*http.Response, error) { return c.http.Do(r) }

func (c *Client) Close() error { return c.Fetch(context.Background(), "bye") } // want `Fetch of the receiver has no limits`

//ratelimit:rule limit=1 per=1m
type Hook func(ctx context.Context) error // want Hook:"limits "

type Callbacks struct { // want Callbacks:"limits "
	//ratelimit:rule limit=1 per=1m
	Send func(ctx context.Context) error
}

// Pinger is an alias of a type without a name, so that its uses cannot be found.
type Pinger = interface {
	//ratelimit:rule limit=1 per=1m
	Ping(ctx context.Context) error
}
