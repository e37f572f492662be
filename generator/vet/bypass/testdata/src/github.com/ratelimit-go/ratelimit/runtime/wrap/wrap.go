// Package wrap stands in for the real one.
package wrap

import (
	"context"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type Rules struct{}

func NewRules(method string, rules ...ratelimit.Rule) *Rules { return nil }

func Next[T any](typ string, next T) T { return next }

type Type struct{}

func NewType(name string, methods ...*Rules) *Type { return nil }

func (*Type) On(l *ratelimit.Limiter) *Limits { return nil }

func (*Type) Rules() []ratelimit.Rule { return nil }

type Limits struct{}

func (*Limits) Limiter() *ratelimit.Limiter { return nil }

func IsNil(v any) bool { return v == nil }

func Take(ctx context.Context, limits *Limits, rules *Rules, subjects ...string) error {
	return nil
}
