// Package wrap stands in for the real one.
package wrap

import (
	"context"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type Rules struct{}

func NewRules(method string, rules ...ratelimit.Rule) *Rules { return nil }

func (*Rules) Rules() []ratelimit.Rule { return nil }

func Next[T any](typ string, next T) T { return next }

func Limiter(typ string, l *ratelimit.Limiter) *ratelimit.Limiter { return l }

func Take(ctx context.Context, l *ratelimit.Limiter, rules *Rules, subjects ...string) error {
	return nil
}
