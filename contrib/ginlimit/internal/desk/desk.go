// Package desk has handlers that are limited by a guard, and a service that is limited by a wrapper. The tests of ginlimit use them.
package desk

import (
	"context"

	"github.com/gin-gonic/gin"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

//go:generate go tool ratelimit

// Greeter greets.
type Greeter interface {
	//ratelimit:rule name=greetings key="{clientIP(ctx)}" limit=2 per=1m
	Greet(ctx context.Context, name string) (string, error)
}

// Polite is a Greeter.
type Polite struct{}

// Greet implements Greeter.
func (Polite) Greet(_ context.Context, name string) (string, error) { return "hello " + name, nil }

// Desk has handlers of gin. Their parameter is the context of their rules.
//
//ratelimit:guard
type Desk struct{ guard *DeskGuard }

// New returns a desk.
func New(limiter *ratelimit.Limiter) *Desk { return &Desk{NewDeskGuard(limiter)} }

// Ask answers with a text.
//
//ratelimit:rule name=questions key="{clientIP(ctx)}" limit=2 per=1m
func (d *Desk) Ask(c *gin.Context) error {
	if err := d.guard.Ask(c); err != nil {
		return err
	}
	c.String(200, "yes")
	return nil
}
