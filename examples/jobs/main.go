// Jobs shows a job queue whose jobs keep the limit of somebody else's service. A producer reserves the time of a job when it puts the job into the
// queue. The worker runs the job then, and asks nobody. So no worker waits in line, no job is tried in vain, and the producer knows at once when
// the job runs, or that there are too many. The queue is asynq; producers are in queue.go, and workers in worker.go.
//
//	REDIS_URL=redis://127.0.0.1:6379 go run .
//
// asynq keeps its tasks in Redis, so this example needs a server. It prints which time each mail was told, and when it was sent.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// mails is what the provider allows all our programs together: four mails a second, evenly spaced. The window is 2 % longer than that of the
// provider, so that a mail may take somewhat longer on its way than the next one.
var mails = ratelimit.Rule{Name: "mails", Algorithm: ratelimit.LeakyBucket, Limit: 4, Per: 1020 * time.Millisecond}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Stdout, os.Getenv("REDIS_URL")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the demonstration on the Redis server at a URL. The read_timeout in the URL limits the time of a decision.
func run(ctx context.Context, out io.Writer, url string) error {
	if url == "" {
		return errors.New("REDIS_URL: found nothing; expected a server for the tasks of asynq, such as redis://127.0.0.1:6379")
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	server := redis.NewClient(options)
	defer server.Close()
	// A real program always uses the same prefix and queue. This one uses new ones each time, so that it finds nothing of an earlier run.
	name := fmt.Sprintf("jobs-demo-%d", time.Now().UnixMicro())
	store := redisstore.New(server, redisstore.WithTimeout(cmp.Or(options.ReadTimeout, 250*time.Millisecond)))
	limiter := ratelimit.New(store, ratelimit.WithPrefix(name))
	if err := limiter.Ping(ctx); err != nil {
		return err
	}
	queue := NewQueue(name, mails, limiter, server)
	queue.ahead = 4 * time.Second
	queue.backoff = func(int, error, *asynq.Task) time.Duration { return time.Second }
	defer func() { _ = queue.inspector.DeleteQueue(name, true) }()
	return newStory(queue, out).tell(ctx)
}
