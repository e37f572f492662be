package main

import "context"

//go:generate go run github.com/ratelimit-go/ratelimit/cmd/ratelimit

// Sender delivers one-time codes.
//
//ratelimit:wrap tz=Asia/Shanghai
type Sender interface {
	// SendCode sends a login code to phone.
	//
	//ratelimit:rule key="{phone}" limit=1  per=1m             message="One code a minute."
	//ratelimit:rule key="{phone}" limit=10 cron="0 0 0 * * *" message="Ten codes a day; {phone} has had them."
	//ratelimit:rule key="{clientIP(ctx)}" limit=100 per=1h    message="A hundred codes an hour for one address."
	SendCode(ctx context.Context, phone string) error
}

// gateway stands for a provider of text messages.
type gateway struct{}

func (gateway) SendCode(context.Context, string) error { return nil }
