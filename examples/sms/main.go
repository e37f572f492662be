// Sms shows limits at work: login codes are sent by text message, which costs money and annoys the wrong people. A phone gets
// one code a minute and ten a day, and one client address may ask for a hundred an hour. The directives stand in sender.go.
//
// It counts in this process, with a clock that it moves by hand, or on Redis when REDIS_URL is set:
//
//	go run .
//	REDIS_URL=redis://127.0.0.1:6379 go run .
package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

func main() {
	tell := inProcess
	if url := os.Getenv("REDIS_URL"); url != "" {
		tell = func(out io.Writer) error { return onRedis(out, url) }
	}
	if err := tell(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// inProcess needs nothing installed. The clock stands still unless the story moves it.
func inProcess(out io.Writer) error {
	shanghai, err := time.LoadLocation("Asia/Shanghai")
	if err != nil {
		return err
	}
	now := time.Date(2026, time.March, 2, 9, 0, 0, 0, shanghai)
	clock := func() time.Time { return now }
	limiter := ratelimit.New(memstore.New(memstore.WithClock(clock)))
	if err := limiter.Ping(context.Background()); err != nil {
		return err
	}
	fmt.Fprintln(out, "Counting in this process. The clock is moved by hand.")
	s := &story{out: out, sender: NewLimitedSender(gateway{}, limiter), now: clock}
	s.secondCode()
	s.nextMinute(func(d time.Duration) { now = now.Add(d) })
	s.tenADay(func(d time.Duration) { now = now.Add(d) })
	s.oneAddress()
	s.noAddress()
	return nil
}

// onRedis shares its counts with every process that uses the same server and prefix. Its clock is the server's, so the parts
// of the story that need another minute or day are left out.
func onRedis(out io.Writer, url string) error {
	options, err := redis.ParseURL(url)
	if err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	// A program has one prefix for good. The demonstration takes a new one each time, so that it always tells the same story.
	prefix := fmt.Sprintf("sms-demo-%d", time.Now().UnixMicro())
	store := redisstore.New(client, redisstore.WithTimeout(cmp.Or(options.ReadTimeout, 250*time.Millisecond)))
	limiter := ratelimit.New(store, ratelimit.WithPrefix(prefix))
	if err := limiter.Ping(context.Background()); err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	fmt.Fprintf(out, "Counting on Redis at %s, in keys that begin with %s.\n", options.Addr, prefix)
	s := &story{out: out, sender: NewLimitedSender(gateway{}, limiter), now: time.Now}
	s.secondCode()
	s.oneAddress()
	s.noAddress()
	return nil
}
