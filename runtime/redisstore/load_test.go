package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// cpu returns the processor time that a server has used, in microseconds.
func cpu(server *redistest.Server) (used float64) {
	for _, line := range strings.Split(server.Do("INFO cpu"), "\r\n") {
		for _, name := range []string{"used_cpu_sys:", "used_cpu_user:"} {
			if rest, ok := strings.CutPrefix(line, name); ok {
				seconds, _ := strconv.ParseFloat(rest, 64)
				used += 1e6 * seconds
			}
		}
	}
	return used
}

// BenchmarkDecide compares the store with a client that sends one EVALSHA for each call. Calls have two rules and contexts that can end.
func BenchmarkDecide(b *testing.B) {
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	rules := []*engine.Rule{
		{Name: "sliding", Tag: "1s", Kind: engine.SlidingWindow, Per: second},
		{Name: "day", Tag: "cron", Kind: engine.Calendar, Schedule: schedule(b, "0 0 0 * * *")},
	}
	bucket := []*engine.Rule{{Name: "bucket", Tag: "bucket", Kind: engine.TokenBucket, Per: second}, rules[1]}
	for _, load := range []struct {
		callers, subjects int
		rules             []*engine.Rule
	}{{1, 512, rules}, {64, 512, rules}, {64, 1, bucket}} {
		for _, way := range []string{"one by one", "store"} {
			b.Run(fmt.Sprintf("callers=%d/subjects=%d/%s", load.callers, load.subjects, way), func(b *testing.B) {
				server := redistest.Start(b)
				client := redis.NewClient(&redis.Options{Addr: server.Addr, PoolSize: 64})
				defer client.Close()
				decide := New(client).Decide
				if way == "one by one" {
					decide = oneByOne(b, client)
				}
				var n atomic.Int64
				var callers sync.WaitGroup
				before := cpu(server)
				for range load.callers {
					callers.Go(func() {
						for i := n.Add(1); i <= int64(b.N); i = n.Add(1) {
							call := engine.Call{Prefix: "p", Claims: make([]engine.Claim, 0, 2)}
							subject := strconv.FormatInt(i*7919%int64(load.subjects), 10)
							for _, r := range load.rules {
								call.Claims = append(call.Claims, engine.Claim{Ask: engine.Ask{Rule: r, Subject: subject, Cost: 1, Limit: 1e8, Burst: 1e8}})
							}
							if v, err := decide(ctx, &call); err != nil || !v.Admitted {
								b.Error(v, err)
							}
						}
					})
				}
				callers.Wait()
				b.ReportMetric((cpu(server)-before)/float64(b.N), "server-us/op")
			})
		}
	}
}

func oneByOne(b *testing.B, client *redis.Client) func(context.Context, *engine.Call) (engine.Verdict, error) {
	if err := client.ScriptLoad(b.Context(), lua.Script).Err(); err != nil {
		b.Fatal(err)
	}
	n := &node{}
	return func(ctx context.Context, call *engine.Call) (engine.Verdict, error) {
		var r lua.Run
		r.AddDecision(call, n.now())
		args := append(append([]any{"evalsha", lua.SHA, len(r.Keys)}, r.Keys...), r.Args...)
		reply, err := client.Do(ctx, args...).Result()
		if err != nil {
			return engine.Verdict{}, err
		}
		return lua.ReadDecision(reply, call)
	}
}
