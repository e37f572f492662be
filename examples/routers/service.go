package routers

import "context"

//go:generate go tool ratelimit

// Greeter greets.
type Greeter interface {
	// Hello greets name.
	//
	//ratelimit:rule name=hello key="{clientIP(ctx)}" limit=3 per=1m message="Three greetings a minute."
	Hello(ctx context.Context, name string) (string, error)
}

// Polite is a Greeter.
type Polite struct{}

// Hello implements Greeter.
func (Polite) Hello(_ context.Context, name string) (string, error) { return "hello " + name, nil }
