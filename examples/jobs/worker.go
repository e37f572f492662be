package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/hibiken/asynq"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// asynq hands out a task when it looks for one. Its defaults are 5 s for tasks of a later time, and 1 s for those that are due. And it goes by whole
// seconds, rounded down. So tasks come too late or too early, and several at a time. Work has them handed out early instead, and onTime sleeps the
// rest.
const (
	lookForDelayed = 500 * time.Millisecond
	lookForDue     = 20 * time.Millisecond // half as much more or less
	early          = time.Second           // more than the two together
)

// workers is how many tasks a process has at the same time: those that sleep until their places, at most two seconds' worth, and those that run.
const workers = 50

// Work starts a server that passes the tasks of the queue to the handler. End it by its method Shutdown.
func (q *Queue) Work(handler asynq.Handler) (*asynq.Server, error) {
	server := asynq.NewServerFromRedisClient(q.server, asynq.Config{
		Queues: map[string]int{q.name: 1}, Concurrency: workers, DelayedTaskCheckInterval: lookForDelayed, TaskCheckInterval: lookForDue,
		IsFailure: func(err error) bool { return !errors.Is(err, ratelimit.ErrTooManyRequests) }, RetryDelayFunc: q.retryDelay,
		LogLevel: asynq.WarnLevel,
	})
	return server, server.Start(q.onTime(handler))
}

// onTime passes each task to next at the time of its place. A task that comes too late has missed its place: if the workers were away for a minute,
// all tasks of that minute would else run at once. A task that comes again after an error has used its place. Both go back into the queue, with a new
// one.
func (q *Queue) onTime(next asynq.Handler) asynq.Handler {
	return asynq.HandlerFunc(func(ctx context.Context, task *asynq.Task) error {
		at, err := placeOf(task)
		if err != nil {
			return fmt.Errorf("a task without a place: %w, %w", err, asynq.SkipRetry)
		}
		retried, _ := asynq.GetRetryCount(ctx)
		if retried > 0 || time.Since(at) > q.late {
			_, err := q.enqueue(ctx, task.Type(), task.Payload(), tried(task)+retried)
			return err // nil: the old task is done
		}
		select {
		case <-time.After(time.Until(at)):
			return next.ProcessTask(ctx, task)
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

// retryDelay says when a task comes again after an error: if it got no new place, when one may be free; else after more time for each attempt.
func (q *Queue) retryDelay(n int, err error, task *asynq.Task) time.Duration {
	if full, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); ok && !full.Never {
		return full.RetryAfter
	}
	return q.backoff(tried(task)+n, err, task)
}

// placeOf returns the time of a task's place.
func placeOf(task *asynq.Task) (time.Time, error) {
	return time.Parse(time.RFC3339Nano, task.Headers()[atHeader])
}

// tried returns how many attempts of a task have failed in places before its present one.
func tried(task *asynq.Task) int {
	n, _ := strconv.Atoi(task.Headers()[triedHeader]) // 0 for a task of another program
	return n
}
