// Outbound limits calls to somebody else: a weather service allows 20 calls a second, so that calls of the whole fleet wait for
// their turn rather than fail. The directive stands in client.go, on a struct.
//
// It counts in this process, or on Redis when REDIS_ADDR is set. Start it there twice at a time, and the two of them share the
// 20 calls:
//
//	go run .
//	REDIS_ADDR=127.0.0.1:6379 go run . & REDIS_ADDR=127.0.0.1:6379 go run .
//
// It prints when it made each call.
package main

import (
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
	limiter := ratelimit.New(memstore.New())
	if addr := os.Getenv("REDIS_ADDR"); addr != "" {
		client := redis.NewClient(&redis.Options{Addr: addr, DialTimeout: time.Second})
		defer client.Close()
		limiter = ratelimit.New(redisstore.New(client), ratelimit.WithPrefix("outbound"))
	}
	err := limiter.Ping(context.Background())
	if err == nil {
		err = ask(os.Stdout, limiter)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The calls of one process: at most 5 are under way at a time, so that those of two wait half a second or so.
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
