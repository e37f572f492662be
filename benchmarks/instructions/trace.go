package main

import (
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// turns is the number of calls that are traced. What all of them enter belongs to the call; the limiter's work in the background does not.
const turns = 10

// traced makes calls of two rules, each between begin and end: in process, or on the Redis server with an address until the client sends.
func traced(addr string) error {
	limiter, m := inProcess(), &mark{}
	if addr != "" {
		client := redis.NewClient(&redis.Options{Addr: addr, Limiter: m, ReadTimeout: time.Minute})
		defer client.Close()
		limiter = ratelimit.New(redisstore.New(client, redisstore.WithTimeout(time.Minute))) // valgrind is slow
	}
	limits := NewLimitedLimits(silent{}, limiter)
	if err := limits.Two(ctx, users[0]); err != nil {
		return err
	}
	for range turns {
		time.Sleep(100 * time.Millisecond) // for the work in the background
		m.set = true
		begin()
		if err := limits.Two(ctx, users[0]); err != nil {
			return err
		}
		if m.set && addr != "" {
			return errors.New("the client has sent nothing")
		}
		m.reached()
	}
	return nil
}

// Callgrind forgets what it has counted when begin is entered, and writes it to a file when end is.
//
//go:noinline
func begin() {}

//go:noinline
func end() {}

// mark calls end the first time that it is reached after it was set. It is a redis.Limiter, so a client reaches it before it sends.
type mark struct{ set bool }

func (m *mark) reached() {
	if m.set {
		m.set = false
		end()
	}
}

// Allow implements redis.Limiter.
func (m *mark) Allow() error {
	m.reached()
	return nil
}

// ReportResult implements redis.Limiter.
func (*mark) ReportResult(error) {}
