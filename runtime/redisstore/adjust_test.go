package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
)

// kinds are the kinds of clients.
var kinds = map[string]func(testing.TB) *store{
	"server": func(t testing.TB) *store { s, _ := open(t); return s }, "cluster": openCluster, "ring": openRing,
}

// Reset forgets states, free places and blocks, and counts the states.
func TestReset(t *testing.T) {
	t.Parallel()
	blocking := &engine.Rule{Name: "blocking", Tag: "1m", Kind: engine.SlidingWindow, Per: 60 * second, Block: 60 * second}
	for name, open := range kinds {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			for range 2 {
				call := of(blocking, 1, "a", "b", "c")
				requireAdmits(t, s, func() engine.Call { return *call.Clone() }, 3, 1)
				call.Claims = append(call.Claims, of(minute, 1, "nobody").Claims...)
				if n, err := s.Reset(context.Background(), &call); n != 3 || err != nil {
					t.Fatalf("found %d states, %v, want 3", n, err)
				}
			}
		})
	}
}

// A charge that was certainly not given back keeps its Delta. One that perhaps was given back does not.
func TestAdjustFails(t *testing.T) {
	t.Parallel()
	s, server := open(t)
	charged := of(minute, 5, "a")
	if _, err := s.Decide(context.Background(), &charged); err != nil {
		t.Fatal(err)
	}
	charged.Claims[0].Delta = -1
	server.Stop()
	_ = s.servers.Client.(interface{ Close() error }).Close()
	if err := s.Adjust(context.Background(), &charged); err == nil || charged.Claims[0].Delta != -1 {
		t.Errorf("got %v, delta %d", err, charged.Claims[0].Delta)
	}
	for err, want := range map[error]bool{
		errors.New("EOF"): false, &net.OpError{Op: "read"}: false, &net.OpError{Op: "dial"}: true, breaker.Unsent{Err: errors.New("x")}: true,
		redis.ErrPoolTimeout: true, redis.ErrClosed: true, fmt.Errorf("wrapped: %w", redis.ErrPoolTimeout): true,
		reply("ERR x"): false, reply("WRONGTYPE x"): false, reply("LOADING x"): true, reply("NOPERM x script: y"): false,
	} {
		if untaken(err) != want {
			t.Errorf("%v: nothing done is %t", err, !want)
		}
	}
}

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}

// A refund gives back exactly the charge, once.
func TestAdjust(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *store{
		"server": func(t testing.TB) *store { s, _ := open(t); return s }, "cluster": openCluster,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			call := of(minute, 10, "a", "b")
			call.Claims[1].Cost = 4
			if _, err := s.Decide(context.Background(), &call); err != nil {
				t.Fatal(err)
			}
			call.Claims[0].Delta, call.Claims[1].Delta = 5, -3
			for range 2 {
				if err := s.Adjust(ended, &call); err != nil {
					t.Fatal(err)
				}
			}
			if left := rooms(t, s, call); left[0] != 4 || left[1] != 9 {
				t.Errorf("%v are left", left)
			}
		})
	}
}
