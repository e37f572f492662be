package main

import (
	"context"
	"time"
)

//go:generate go run github.com/ratelimit-go/ratelimit/cmd/ratelimit

// Client calls an external weather service, which allows 20 calls a second for all our processes together. A call waits up to a second
// for its turn. If the turn would come later, the call is refused at once.
//
//ratelimit:rule limit=20 per=1s algorithm=leaky-bucket wait=1s
type Client struct {
	called func(at time.Time, city string) // stands for the service
}

// Temperature returns the temperature in a city, in degrees Celsius.
func (c *Client) Temperature(ctx context.Context, city string) (int, error) {
	c.called(time.Now(), city)
	return 21, nil
}
