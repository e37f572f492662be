package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// story is the demonstration: producers, and a worker that sends their mails. It prints what happens.
type story struct {
	queue *Queue
	began time.Time
	log   *log.Logger
	lost  sync.Once // the provider's connection, at the first attempt to send mail 2
	sent  chan struct{}
}

func newStory(queue *Queue, out io.Writer) *story {
	return &story{queue: queue, began: time.Now(), log: log.New(out, "", 0), sent: make(chan struct{}, 100)}
}

// say prints what happens, with the seconds since the beginning.
func (s *story) say(format string, values ...any) {
	s.log.Print(s.seconds(time.Now()), "  ", fmt.Sprintf(format, values...))
}

func (s *story) seconds(t time.Time) string { return fmt.Sprintf("%.3f s", t.Sub(s.began).Seconds()) }

// tell tells the story.
func (s *story) tell(ctx context.Context) error {
	worker, err := s.queue.Work(s)
	if err != nil {
		return err
	}
	defer worker.Shutdown()
	n, err := s.produce(ctx)
	if err != nil {
		return err
	}
	for range n {
		select {
		case <-s.sent:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// ProcessTask implements asynq.Handler. The time of the task has come.
func (s *story) ProcessTask(_ context.Context, task *asynq.Task) (err error) {
	mail := string(task.Payload())
	if mail == "mail 2" {
		s.lost.Do(func() { err = errors.New("the connection is lost") })
	}
	if err != nil {
		s.say("%s is not sent: %v", mail, err)
		return err
	}
	place, err := placeOf(task)
	s.say("%s is sent; its place is %s", mail, s.seconds(place))
	s.sent <- struct{}{}
	return err
}

// produce enqueues mails until there are too many. The first three come at once, as from three programs. At last one is cancelled, and another gets
// its place. It returns how many there are.
func (s *story) produce(ctx context.Context) (n int, err error) {
	const atOnce = 3
	var all sync.WaitGroup
	failed := make([]error, atOnce)
	for i := range failed {
		all.Go(func() { _, failed[i] = s.enqueue(ctx, i+1) })
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		return 0, err
	}
	var last *Job
	for n = atOnce + 1; ; n++ {
		job, err := s.enqueue(ctx, n)
		if errors.Is(err, ratelimit.ErrTooManyRequests) {
			s.say("mail %d is refused: %v", n, err)
			break
		}
		if err != nil {
			return 0, err
		}
		last = job
	}
	if err := last.Cancel(ctx); err != nil {
		return 0, err
	}
	s.say("mail %d is cancelled", n-1)
	_, err = s.enqueue(ctx, n)
	return n - 1, err
}

// enqueue enqueues a mail.
func (s *story) enqueue(ctx context.Context, number int) (*Job, error) {
	mail := fmt.Sprintf("mail %d", number)
	job, err := s.queue.Enqueue(ctx, "mail", []byte(mail))
	if err == nil {
		s.say("%s is told %s", mail, s.seconds(job.place.At))
	}
	return job, err
}
