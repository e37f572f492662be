package redisstore

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

func openCluster(t testing.TB) *store {
	c := redistest.StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	t.Cleanup(func() { _ = client.Close() })
	return New(client, asking...).(*store)
}

func openRing(t testing.TB) *store {
	client := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": redistest.Start(t).Addr, "b": redistest.Start(t).Addr}})
	t.Cleanup(func() { _ = client.Close() })
	return New(client, asking...).(*store)
}

// rooms returns how many permits each subject has left.
func rooms(t rapid.TB, s *store, call engine.Call) []int64 {
	peek := *clone(&call)
	peek.Peek, peek.UpTo, peek.Refused = true, false, false
	if _, err := s.Decide(context.Background(), &peek); err != nil {
		t.Fatal(err)
	}
	var left []int64
	for _, c := range peek.Claims {
		left = append(left, c.Room)
	}
	return left
}

// On several servers a call is charged to all its rules or to none, and all refusing rules are told.
func TestSpreadIsAllOrNothing(t *testing.T) {
	for name, s := range map[string]*store{"cluster": openCluster(t), "ring": openRing(t)} {
		n := 0
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				n++
				call := of(minute, 3, fmt.Sprint(n, "a"), fmt.Sprint(n, "b"), fmt.Sprint(n, "c"))
				for range rapid.IntRange(1, 8).Draw(t, "calls") {
					checkSpread(t, s, call)
				}
			})
		})
	}
}

func checkSpread(t *rapid.T, s *store, all engine.Call) {
	call := engine.Call{Prefix: all.Prefix, UpTo: rapid.Bool().Draw(t, "up to"), Report: rapid.Bool().Draw(t, "report")}
	want, admitted := []int64(nil), true
	cost, taken := rapid.Int64Range(1, 3).Draw(t, "cost"), int64(0)
	before, one := rooms(t, s, all), rapid.IntRange(0, len(all.Claims)-1).Draw(t, "one")
	for i, c := range all.Claims {
		if rapid.Bool().Draw(t, "wanted") || i == one {
			c.Cost = cost
			call.Claims = append(call.Claims, c)
			want = append(want, before[i])
		}
	}
	taken = cost
	for _, room := range want {
		if call.UpTo {
			taken = min(taken, room)
		} else if room < cost {
			taken = 0
		}
	}
	admitted = taken > 0
	v, err := s.Decide(context.Background(), &call)
	if err != nil || v.Admitted != admitted || call.UpTo && v.Taken != taken {
		t.Fatalf("got %+v, %v, want %t and %d of rooms %v for %+v", v, err, admitted, taken, want, call)
	}
	for i, room := range rooms(t, s, call) {
		c := call.Claims[i]
		asked := cost
		if call.UpTo {
			asked = 1
		}
		if room != want[i]-taken || c.Charged != taken || c.Refused != (want[i] < asked) || call.Report && c.Room != room {
			t.Fatalf("room %d was %d, taken %d, claim %+v", room, want[i], taken, c)
		}
	}
}

// A call that has the time to wait is told when to ask again, and charged nothing.
func TestSpreadAsksAgain(t *testing.T) {
	s := openCluster(t)
	short := &engine.Rule{Name: "short", Tag: "50ms", Kind: engine.SlidingWindow, Per: 50_000}
	call := of(short, 1, "a", "b")
	for i := range call.Claims {
		call.Claims[i].Wait = 60 * second
	}
	for range 5 {
		for {
			c := *clone(&call)
			v, err := s.Decide(context.Background(), &c)
			if err != nil {
				t.Fatal(err)
			}
			if v.Admitted {
				break
			}
			if !c.AskAgain(v) || v.At <= v.Now || c.Claims[0].Wait != 60*second {
				t.Fatalf("got %+v of %+v", v, c)
			}
			time.Sleep(time.Duration(v.At-v.Now) * time.Microsecond)
		}
	}
}

// The first calls to a cluster whose client does not show that it is one succeed, also where they are sent together.
func TestHiddenCluster(t *testing.T) {
	c := redistest.StartCluster(t, 3)
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	defer client.Close()
	for round := range 20 {
		s := New(struct{ redis.UniversalClient }{client}, asking...)
		errs := make(chan error, 16)
		for i := range cap(errs) {
			go func() {
				call := of(minute, 9, fmt.Sprint(round, i))
				_, err := s.Decide(context.Background(), &call)
				errs <- err
			}()
		}
		for range cap(errs) {
			if err := <-errs; err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
	}
}
