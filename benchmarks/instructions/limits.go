package main

import "context"

//go:generate go tool ratelimit

// Limits has the methods whose calls are counted.
//
//ratelimit:wrap
type Limits interface {
	//ratelimit:rule key="{user}" algorithm=token-bucket limit=1000000 per=24h
	Bucket(ctx context.Context, user string) error

	//ratelimit:rule key="{user}" algorithm=fixed-window limit=1000000000 per=24h
	Fixed(ctx context.Context, user string) error

	// Sliding has a window that each subject fills before long, so that a call also drops a permit.
	//
	//ratelimit:rule key="{user}" limit=1000 per=300ms
	Sliding(ctx context.Context, user string) error

	//ratelimit:rule key="{user}" algorithm=token-bucket limit=1000000 per=24h
	//ratelimit:rule key="{user}" algorithm=fixed-window limit=1000000000 per=24h
	Two(ctx context.Context, user string) error

	//ratelimit:rule key="{user}" algorithm=token-bucket limit=1 per=24h
	Refused(ctx context.Context, user string) error
}

// silent does nothing.
type silent struct{}

func (silent) Bucket(context.Context, string) error  { return nil }
func (silent) Fixed(context.Context, string) error   { return nil }
func (silent) Sliding(context.Context, string) error { return nil }
func (silent) Two(context.Context, string) error     { return nil }
func (silent) Refused(context.Context, string) error { return nil }
