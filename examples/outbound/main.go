// Outbound shows clients of a service that answers 429 to those who ask too often. Three programs share its limit by httplimit.Transport: their
// requests wait for their turn, and all programs hold while the service asks for quiet. Beside them, three naive programs sleep whenever they
// are told to.
//
// The three programs are processes that count on Redis if REDIS_URL is set, and parts of this process otherwise:
//
//	go run .
//	REDIS_URL=redis://127.0.0.1:6379 go run .
//
// It prints what the service saw. The service is part of the example, and listens on the loopback interface.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// programs is how many programs share the limit.
const programs = 3

// example is a run of the example.
type example struct {
	limit   int
	per     time.Duration
	windows int
	picture string // the file for a picture; "" for none
}

func main() {
	var e example
	flag.IntVar(&e.limit, "limit", 500, "requests that the service serves in a window")
	flag.DurationVar(&e.per, "per", 10*time.Second, "the length of its window")
	flag.IntVar(&e.windows, "windows", 12, "how many windows to watch")
	flag.StringVar(&e.picture, "svg", "", "the file for a picture of what the service saw")
	flag.Parse()
	run := e.run
	if url := os.Getenv("OUTBOUND_FAR"); url != "" {
		run = func(io.Writer) error { return e.program(url) }
	}
	if err := run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run starts two services, one for the limited programs and one for the naive ones, and prints what they saw.
func (e *example) run(out io.Writer) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(e.windows)*e.per)
	defer cancel()
	var all sync.WaitGroup
	careful, url, err := e.serve(ctx)
	if err != nil {
		return err
	}
	naive, naiveURL, err := e.serve(ctx)
	if err != nil {
		return err
	}
	failed := make(chan error, programs)
	if os.Getenv("REDIS_URL") != "" {
		for range programs {
			all.Go(func() { failed <- e.process(ctx, url) })
		}
	} else {
		store := memstore.New()
		for range programs {
			client := limited(ratelimit.New(store), e.limit, e.per)
			all.Go(func() { runLimited(ctx, client, url) })
		}
	}
	for range programs {
		all.Go(func() { runNaive(ctx, naiveURL) })
	}
	all.Wait()
	close(failed)
	for err := range failed {
		if err != nil {
			return err
		}
	}
	e.print(out, careful, naive)
	if e.picture == "" {
		return nil
	}
	return os.WriteFile(e.picture, e.draw(careful, naive), 0o666)
}

// serve starts a service that ends with ctx, and returns its URL.
func (e *example) serve(ctx context.Context) (*far, string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}
	side := &far{limit: e.limit, per: e.per, began: time.Now()}
	server := &http.Server{Handler: side, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(listener) }()
	context.AfterFunc(ctx, func() { _ = server.Close() })
	return side, "http://" + listener.Addr().String() + "/", nil
}

// process runs this program again, as one of several processes, until ctx ends.
func (e *example) process(ctx context.Context, url string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, self, "-limit", strconv.Itoa(e.limit), "-per", e.per.String())
	cmd.Env = append(os.Environ(), "OUTBOUND_FAR="+url)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); ctx.Err() == nil {
		return fmt.Errorf("a process ended too early: %w", err)
	}
	return nil
}

// program makes limited requests until somebody ends the process, or for an hour.
func (e *example) program(url string) error {
	options, err := redis.ParseURL(os.Getenv("REDIS_URL"))
	if err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	server := redis.NewClient(options)
	defer server.Close()
	store := redisstore.New(server, redisstore.WithTimeout(cmp.Or(options.ReadTimeout, 250*time.Millisecond)))
	limiter := ratelimit.New(store, ratelimit.WithPrefix("outbound"))
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if err := limiter.Ping(ctx); err != nil {
		return err
	}
	runLimited(ctx, limited(limiter, e.limit, e.per), url)
	return nil
}
