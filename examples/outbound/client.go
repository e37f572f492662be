package main

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// workers is how many requests a program makes at the same time.
const workers = 20

// rules keep all our programs together within what the far side allows. The window is 2 % longer than the far side's: a request may take that
// much longer on its way than another one, and still no window of the far side sees too many.
func rules(limit int, per time.Duration) []ratelimit.Rule {
	return []ratelimit.Rule{{
		Name: "far", Algorithm: ratelimit.LeakyBucket, Limit: int64(limit), Per: (per + per/50).Round(time.Microsecond), Wait: time.Minute,
	}}
}

// limited returns a client whose requests wait for their turn, and hold in all programs while the far side asks for quiet.
func limited(limiter *ratelimit.Limiter, limit int, per time.Duration) *http.Client {
	return &http.Client{Transport: httplimit.Transport(limiter, nil, rules(limit, per), transport())}
}

// transport returns a transport that keeps a connection for each worker.
func transport() http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = workers
	return t
}

// work makes requests until ctx ends.
func work(ctx context.Context, request func(context.Context)) {
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				request(ctx)
			}
		})
	}
	all.Wait()
}

// get makes one request, and returns how long the far side asks to wait.
func get(ctx context.Context, client *http.Client, url string) time.Duration {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0
	}
	response, err := client.Do(request)
	if err != nil {
		return 0
	}
	_, _ = io.Copy(io.Discard, response.Body)
	_ = response.Body.Close()
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // 0 if it asks for nothing
	return time.Duration(seconds) * time.Second
}

// runLimited makes requests until ctx ends. Transport waits, so there is nothing else to do.
func runLimited(ctx context.Context, client *http.Client, url string) {
	work(ctx, func(ctx context.Context) { get(ctx, client, url) })
}

// runNaive is the loop that many programs have: each worker sleeps when the far side tells it to.
func runNaive(ctx context.Context, url string) {
	client := &http.Client{Transport: transport()}
	work(ctx, func(ctx context.Context) {
		select {
		case <-time.After(get(ctx, client, url)):
		case <-ctx.Done():
		}
	})
}
