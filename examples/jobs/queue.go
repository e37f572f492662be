package main

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Queue is a queue of asynq whose tasks run at their places under a rule. A place is a time. It belongs to one attempt of one task.
type Queue struct {
	name      string
	rule      ratelimit.Rule
	ahead     time.Duration        // how far ahead a place may be; who would get a later one is refused
	late      time.Duration        // how long after its place a task may still begin
	retries   int                  // how often a task that has failed comes again
	backoff   asynq.RetryDelayFunc // and when
	limiter   *ratelimit.Limiter
	server    redis.UniversalClient
	client    *asynq.Client
	inspector *asynq.Inspector
}

// NewQueue returns a queue of a name, on a Redis server. It is for producers, and for workers. Places are up to an hour ahead.
func NewQueue(name string, rule ratelimit.Rule, limiter *ratelimit.Limiter, server redis.UniversalClient) *Queue {
	return &Queue{
		name: name, rule: rule, ahead: time.Hour, late: time.Second, retries: 25, backoff: asynq.DefaultRetryDelayFunc,
		limiter: limiter, server: server,
		client: asynq.NewClientFromRedisClient(server), inspector: asynq.NewInspectorFromRedisClient(server),
	}
}

// Job is a task in the queue, with its place. Only this value can give the place back, and nothing of it is in the store. If the program ends, the
// task still runs at its place. If somebody deletes the task then, or if the program ends between Reserve and Enqueue, the place stays taken and is
// not used.
type Job struct {
	ID    string
	place ratelimit.Decision
	queue *Queue
}

// Headers of a task.
const (
	atHeader    = "At"    // the time of its place
	triedHeader = "Tried" // how many attempts have failed in earlier places
)

// Enqueue reserves a place, and puts a task into the queue that runs then. If no place is free within the time that the queue looks ahead, the error
// is a *TooManyRequestsError, whose RetryAfter says when to ask again. A producer that answers HTTP can pass it to httplimit.Answer.
func (q *Queue) Enqueue(ctx context.Context, kind string, payload []byte) (*Job, error) {
	return q.enqueue(ctx, kind, payload, 0)
}

func (q *Queue) enqueue(ctx context.Context, kind string, payload []byte, tried int) (*Job, error) {
	place, err := q.reserve(ctx)
	if err != nil {
		return nil, err
	}
	job := &Job{ID: rand.Text(), place: place, queue: q}
	headers := map[string]string{atHeader: place.At.UTC().Format(time.RFC3339Nano), triedHeader: strconv.Itoa(tried)}
	// The time is At, and not this program's clock with Delay: At is by one clock, that of the store, so places keep their distances whichever
	// program has reserved them. asynq and onTime compare it with the worker's clock, so keep the clocks in step: a worker whose clock is a second
	// fast runs all tasks a second early.
	_, err = q.client.EnqueueContext(ctx, asynq.NewTaskWithHeaders(kind, payload, headers),
		asynq.TaskID(job.ID), asynq.Queue(q.name), asynq.MaxRetry(q.retries-tried), asynq.ProcessAt(place.At.Add(-early)))
	if err != nil {
		return nil, errors.Join(err, job.abandon(ctx))
	}
	return job, nil
}

// reserve takes the next place. The deadline of the context says how far ahead it may be. So it is not that of the caller, whose request has perhaps
// five seconds.
func (q *Queue) reserve(ctx context.Context) (ratelimit.Decision, error) {
	near, cancel := context.WithTimeout(context.WithoutCancel(ctx), q.ahead)
	defer cancel()
	place, err := q.limiter.Reserve(near, ratelimit.Request{Rule: q.rule})
	if err == nil && !place.Allowed {
		err = &ratelimit.TooManyRequestsError{
			Message: "The queue is full.", RetryAfter: place.RetryAfter, Never: place.Never, Violations: place.Violations,
		}
	}
	return place, err
}

// Cancel deletes the task of the job, and gives its place back if that is still to come. The task is deleted first, as somebody else may get the
// place at once. The error wraps asynq.ErrTaskNotFound if the task is over, or has got a new place, and with it another ID.
func (j *Job) Cancel(ctx context.Context) error {
	err := j.queue.inspector.DeleteTask(j.queue.name, j.ID)
	if err == nil && time.Now().Before(j.place.At) {
		err = j.place.Refund(ctx)
	}
	return err
}

// abandon gives back the place of a job that asynq has not taken. If asynq's reply was lost, the task is in the queue nevertheless, and is deleted.
// If nobody knows, the place stays taken.
func (j *Job) abandon(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	err := j.Cancel(ctx)
	if errors.Is(err, asynq.ErrTaskNotFound) || errors.Is(err, asynq.ErrQueueNotFound) {
		err = j.place.Refund(ctx)
	}
	return err
}
