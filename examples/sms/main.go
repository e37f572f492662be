// Sms shows limits on login codes, which are sent by text message. Each message costs money, and may annoy somebody who has not asked for
// it. A phone gets one code a minute and ten a day, and one client address may ask for a hundred an hour. The directives are in
// sender.go.
//
// It counts in this process, with a clock that it moves itself, or on Redis if REDIS_URL is set:
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

// inProcess runs the story with a store in this process. Its clock stands still unless the story moves it.
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

// onRedis runs the story on Redis, which shares counts between all processes that use the same server and prefix. Its clock is that of
// the server, so the parts of the story that need another minute or day are left out.
func onRedis(out io.Writer, url string) error {
	options, err := redis.ParseURL(url)
	if err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	client := redis.NewClient(options)
	defer client.Close()
	// A real program always uses the same prefix. This one uses a new prefix each time, so that its output is always the same.
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
