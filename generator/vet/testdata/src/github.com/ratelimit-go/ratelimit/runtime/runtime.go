// Package runtime is as much of the real one as wrappers need to compile.
package runtime

import "context"

type Limiter struct{}

func (*Limiter) Take(ctx context.Context, rules *Rules, keys ...string) error { return nil }

type Rules struct{}
