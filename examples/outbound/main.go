// Outbound shows calls to an external service that wait for their turn. A weather service allows 20 calls a second, so further calls
// sleep instead of failing. The directive is in client.go, on a method of a struct.
//
// It counts in this process, or on Redis if REDIS_URL is set. Two processes on one Redis server share the 20 calls:
//
//	go run .
//	export REDIS_URL=redis://127.0.0.1:6379; go run . & go run .
//
// It prints the time of each call.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

func main() {
	if err := run(os.Stdout, os.Getenv("REDIS_URL")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run counts on the Redis server at a URL, or in this process if the URL is "". The read_timeout in the URL limits the time of a
// decision.
func run(out io.Writer, url string) error {
	store := memstore.New()
	if url != "" {
		options, err := redis.ParseURL(url)
		if err != nil {
			return fmt.Errorf("REDIS_URL: %w", err)
		}
		client := redis.NewClient(options)
		defer client.Close()
		store = redisstore.New(client, redisstore.WithTimeout(cmp.Or(options.ReadTimeout, 250*time.Millisecond)))
	}
	limiter := ratelimit.New(store, ratelimit.WithPrefix("outbound"))
	if err := limiter.Ping(context.Background()); err != nil {
		return err
	}
	return ask(out, limiter)
}

// The calls of one process. At most 5 of them run at a time, so that with two processes a call waits about half a second.
const (
	workers = 5
	calls   = 4 // of each worker
)

// ask makes the calls, and prints each one when it is made.
func ask(out io.Writer, limiter *ratelimit.Limiter) error {
	var mu sync.Mutex
	client := NewLimitedClient(&Client{called: func(at time.Time, city string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, "%s  %s\n", at.Format(time.RFC3339Nano), city)
	}}, limiter)

	failed := make([]error, workers)
	var all sync.WaitGroup
	for w, city := range [workers]string{"Lima", "Oslo", "Pune", "Rome", "Suva"} {
		all.Go(func() {
			for range calls {
				_, err := client.Temperature(context.Background(), city)
				failed[w] = errors.Join(failed[w], err)
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}
