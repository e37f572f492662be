// Shop shows a whole service with rate limits: one set of rules for HTTP and gRPC, calls to an external service that wait for their
// turn, counts on Redis, metrics for Prometheus, a readiness check, and tests. The directives are in shop.go.
//
//	go run . -demo    makes some requests, prints the results, and ends
//	go run .          serves HTTP on 127.0.0.1:8080 and gRPC on 127.0.0.1:9090
//
// It counts in this process, or on Redis if REDIS_URL is set: REDIS_URL=redis://127.0.0.1:6379 go run . -demo
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/ratelimit-go/ratelimit/contrib/promlimit"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

func main() {
	c := config{redis: os.Getenv("REDIS_URL")}
	flag.StringVar(&c.web, "http", "127.0.0.1:8080", "the `address` of HTTP")
	flag.StringVar(&c.rpc, "grpc", "127.0.0.1:9090", "the `address` of gRPC")
	flag.StringVar(&c.prefix, "prefix", "shop", "the `text` that the keys in Redis begin with")
	flag.BoolVar(&c.demo, "demo", false, "serve on free ports, make some requests, print what became of them, and end")
	flag.Parse()
	if c.demo {
		c.web, c.rpc = "127.0.0.1:0", "127.0.0.1:0"
		c.prefix = fmt.Sprintf("shop-demo-%d", time.Now().UnixMicro()) // a new prefix each time, so that the output is always the same
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, c); err != nil {
		log.Fatal(err)
	}
}

// config has the settings from the command line and the environment.
type config struct {
	web, rpc, redis, prefix string
	demo                    bool
}

// run serves until ctx ends or the demonstration is over.
func run(ctx context.Context, out io.Writer, c config) error {
	store, closeStore, err := newStore(c.redis)
	if err != nil {
		return err
	}
	defer closeStore()
	metrics := promlimit.New()
	limiter := ratelimit.New(store, ratelimit.WithPrefix(c.prefix), ratelimit.WithObserver(metrics.Observe))
	metrics.Watch(limiter)
	if err := limiter.Ping(ctx); err != nil { // the error says what to do
		return err
	}
	web, err := net.Listen("tcp", c.web)
	if err != nil {
		return err
	}
	rpc, err := net.Listen("tcp", c.rpc)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var group errgroup.Group
	if c.demo {
		group.Go(func() error {
			defer stop()
			return demo(ctx, out, web.Addr().String(), rpc.Addr().String())
		})
	} else {
		log.Printf("HTTP on %s, gRPC on %s", web.Addr(), rpc.Addr())
	}
	group.Go(func() error {
		defer stop()
		return newApp(limiter, metrics).serve(ctx, web, rpc)
	})
	return group.Wait()
}

// newStore returns a store on the Redis server at a URL, or in this process if the URL is "", and a function that closes it. The
// read_timeout in the URL limits the time of a decision.
func newStore(url string) (ratelimit.Store, func() error, error) {
	if url == "" {
		return memstore.New(), func() error { return nil }, nil
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	client := redis.NewClient(options)
	timeout := redisstore.WithTimeout(cmp.Or(options.ReadTimeout, 250*time.Millisecond))
	return redisstore.New(client, redisstore.WithStats(), timeout), client.Close, nil
}
