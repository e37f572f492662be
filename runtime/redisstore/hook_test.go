package redisstore

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/breaker"
)

// decisions is a hook that counts decisions, and how many of them got no reply.
type decisions struct{ seen, failed atomic.Int64 }

func (*decisions) DialHook(next redis.DialHook) redis.DialHook { return next }

func (d *decisions) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		switch cmd.Name() {
		case "fcall", "evalsha", "eval":
			d.seen.Add(1)
			if !breaker.Reached(err) {
				d.failed.Add(1)
			}
		}
		return err
	}
}

func (*decisions) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Hooks of the client see the decisions of a store that is made later. These decisions have the store's timeout, whatever the client's is.
func TestHooksOfTheClient(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, ReadTimeout: time.Hour})
	defer client.Close()
	d := new(decisions)
	client.AddHook(d)
	call := of(minute, 10, "a")
	if _, err := New(client, asking...).Decide(t.Context(), &call); err != nil || d.seen.Load() == 0 || d.failed.Load() > 0 {
		t.Errorf("the hook saw %d decisions and %d failures, error %v", d.seen.Load(), d.failed.Load(), err)
	}
	server.Pause()
	redistest.Eventually(t, "a failure that the hook saw", func() bool { // on a busy machine a call may have no time to send
		if _, err := New(client, WithTimeout(50*time.Millisecond)).Decide(t.Context(), &call); err == nil {
			t.Error("a silent server decides")
		}
		return d.failed.Load() > 0
	})
	server.Resume()
}

// Hooks that a cluster's client gives to the clients of its servers see the decisions.
func TestHooksOfACluster(t *testing.T) {
	t.Parallel()
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: redistest.StartCluster(t, 2).Addrs()})
	defer client.Close()
	d := new(decisions)
	client.OnNewNode(func(server *redis.Client) { server.AddHook(d) })
	call := of(minute, 10, "a")
	if _, err := New(client, asking...).Decide(t.Context(), &call); err != nil || d.seen.Load() == 0 {
		t.Errorf("the hook saw %d decisions, error %v", d.seen.Load(), err)
	}
}

// Hooks that a ring's options give to the clients of its servers see the decisions.
func TestHooksOfARing(t *testing.T) {
	t.Parallel()
	d := new(decisions)
	client := redis.NewRing(&redis.RingOptions{
		Addrs: map[string]string{"one": redistest.Start(t).Addr, "two": redistest.Start(t).Addr},
		NewClient: func(options *redis.Options) *redis.Client {
			server := redis.NewClient(options)
			server.AddHook(d)
			return server
		},
	})
	defer client.Close()
	call := of(minute, 10, "a")
	if _, err := New(client, asking...).Decide(t.Context(), &call); err != nil || d.seen.Load() == 0 {
		t.Errorf("the hook saw %d decisions, error %v", d.seen.Load(), err)
	}
}
