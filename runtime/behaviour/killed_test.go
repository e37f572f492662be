package behaviour_test

import (
	"context"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// killWhileWaiting starts a program whose calls wait for the rule, and kills it. If all calls were admitted before it could kill the program, it
// tries again with another one.
func (s *subject) killWhileWaiting(t *testing.T, server *redistest.Server, q ratelimit.Request) {
	t.Helper()
	apart := q.Rule.Per / time.Duration(q.Rule.Limit)
	for waiting := false; !waiting; {
		program := program(t, server, q.Rule.Per, q.Rule.Name)
		if err := program.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			_ = program.Wait() // killed
			close(ended)
		}()
		for over := false; !waiting && !over; {
			waiting = s.peek(t, q).RetryAfter > 3*apart
			select {
			case <-ended:
				over = true
			case <-time.After(time.Millisecond):
			}
		}
		_ = program.Process.Kill()
		<-ended
	}
}

// The places of a process that is killed while it waits expire, and let nobody exceed a limit.
func TestProcessKilledWhileItWaits(t *testing.T) {
	onEveryServer(t, func(t *testing.T, server *redistest.Server) {
		s, client := onServer(t, server), connect(t, server.Addr)
		q := ratelimit.Request{Rule: queued["leaky-bucket"], Key: "k"}
		q.Rule.Per = time.Hour
		s.killWhileWaiting(t, server, q)
		if d := s.peek(t, q); d.Allowed {
			t.Error("the places of the killed process are gone at once")
		}
		requireExpiries(t, server)
		for _, key := range keysOn(t, client) {
			if ttl := client.PTTL(context.Background(), key).Val(); ttl > 3*time.Hour {
				t.Errorf("%q expires after %v; up to two hours and a half were waited for", key, ttl)
			}
		}
	})
}

// Calls after the death of a waiting process get places behind those of the process, and are admitted then. By the store's times, they are no
// faster than the rule allows.
func TestCallsAfterAProcessKilledWhileItWaited(t *testing.T) {
	onEveryServer(t, func(t *testing.T, server *redistest.Server) {
		s := onServer(t, server)
		q := ratelimit.Request{Rule: queued["leaky-bucket"], Key: "k"}
		q.Rule.Per = time.Second
		s.killWhileWaiting(t, server, q)
		last := s.peek(t, q)
		free := last.At.Add(last.RetryAfter)
		var places []int64
		for range 10 {
			d, err := s.limiter.Wait(context.Background(), q)
			if err != nil || !d.Allowed {
				t.Fatalf("got %+v, error %v", d, err)
			}
			places = append(places, d.At.UnixMicro())
		}
		if first := time.UnixMicro(places[0]); first.Before(free) {
			t.Errorf("the first call was admitted %v before the places of the killed process end", free.Sub(first))
		}
		requireLimit(t, q.Rule, places)
		if d, err := s.limiter.Wait(context.Background(), q); err != nil || !d.Allowed {
			t.Errorf("got %+v, error %v", d, err)
		}
	})
}
