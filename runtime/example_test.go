package ratelimit_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
)

// noon returns a store whose clock stands still, so that these examples always print the same.
func noon() ratelimit.Store {
	return memstore.New(memstore.WithClock(func() time.Time {
		return time.Date(2026, time.March, 2, 12, 0, 0, 0, time.UTC)
	}))
}

func ExampleLimiter_Allow() {
	ctx := context.Background()
	limiter := ratelimit.New(noon()) // in a program memstore.New(), or redisstore.New(client)
	minute := ratelimit.Rule{Name: "login", Limit: 2, Per: time.Minute}
	day := ratelimit.Rule{Name: "login", Limit: 100, Cron: "@daily", TZ: "Europe/Berlin"}

	for range 3 {
		decision, err := limiter.Allow(ctx, // under both rules
			ratelimit.Request{Rule: minute, Key: "ann"},
			ratelimit.Request{Rule: day, Key: "ann"},
		)
		switch {
		case err != nil: // nothing was decided: for example, the store cannot be reached, or a cost is negative
			fmt.Println(err)
		case decision.Allowed:
			fmt.Println("come in")
		default:
			fmt.Println("try again in", decision.RetryAfter)
			for _, v := range decision.Violations {
				fmt.Println(v)
			}
		}
	}
	// Output:
	// come in
	// come in
	// try again in 1m0s
	// login: 2 per minute for "ann"
}

func ExampleLimiter_Wait() {
	limiter := ratelimit.New(noon())
	rule := ratelimit.Rule{Name: "api", Algorithm: ratelimit.LeakyBucket, Limit: 2, Per: time.Second}
	wait := func(ctx context.Context) {
		decision, err := limiter.Wait(ctx, ratelimit.Request{Rule: rule}) // sleeps until its place has come
		if refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); ok {
			fmt.Println("not in time; there is a place in", refusal.RetryAfter) // at once: it would be behind the deadline
			return
		}
		fmt.Println("at", decision.At.UTC().Format("15:04:05.000"), err)
	}

	for range 2 {
		wait(context.Background())
	}
	ctx, cancel := context.WithTimeout(context.Background(), 900*time.Millisecond)
	defer cancel()
	wait(ctx)
	// Output:
	// at 12:00:00.000 <nil>
	// at 12:00:00.500 <nil>
	// not in time; there is a place in 1s
}

// A job queue asks when a job may run, and runs it then.
func ExampleLimiter_Reserve() {
	ctx, limiter := context.Background(), ratelimit.New(noon())
	carrier := ratelimit.Request{Rule: ratelimit.Rule{Name: "carrier", Algorithm: ratelimit.LeakyBucket, Limit: 2, Per: time.Second, Queue: 2}}
	enqueue := func(job string) ratelimit.Decision {
		place, err := limiter.Reserve(ctx, carrier)
		switch {
		case err != nil:
			fmt.Println(err)
		case place.Allowed:
			fmt.Println(job, "runs at", place.At.UTC().Format("15:04:05.000"), "which is in", place.Delay)
		default:
			fmt.Println(job, "asks again in", place.RetryAfter)
		}
		return place
	}

	enqueue("ann's mail")
	enqueue("bob's mail")
	last := enqueue("cid's mail")
	enqueue("dan's mail")                    // two mails are in the queue
	if err := last.Refund(ctx); err != nil { // cid's mail is cancelled
		fmt.Println(err)
	}
	enqueue("dan's mail")
	// Output:
	// ann's mail runs at 12:00:00.000 which is in 0s
	// bob's mail runs at 12:00:00.500 which is in 500ms
	// cid's mail runs at 12:00:01.000 which is in 1s
	// dan's mail asks again in 500ms
	// dan's mail runs at 12:00:01.000 which is in 1s
}

// A batch takes as many permits as there are.
func ExampleRequest() {
	limiter := ratelimit.New(noon())
	mails := ratelimit.Rule{Name: "mails", Limit: 10, Per: time.Minute}
	for range 3 {
		decision, err := limiter.Allow(context.Background(), ratelimit.Request{Rule: mails, Key: "ann", Cost: 6, UpTo: true})
		fmt.Println(decision.Taken, decision.RetryAfter, err)
	}
	// Output:
	// 6 0s <nil>
	// 4 0s <nil>
	// 0 1m0s <nil>
}

func ExampleOverrides() {
	ctx := context.Background()
	limiter := ratelimit.New(noon())
	request := ratelimit.Request{Rule: ratelimit.Rule{Name: "search", Limit: 1, Per: time.Minute}, Key: "ann"}
	try := func(when string) {
		decision, err := limiter.Allow(ctx, request)
		fmt.Println(when, decision.Allowed, err)
	}

	try("as written:")
	try("as written:")
	if err := limiter.Overrides().SetLocal("search", ratelimit.Override{Limit: new(int64(2))}); err != nil {
		fmt.Println(err)
	}
	try("raised:")
	if err := limiter.Overrides().SetLocal("search", ratelimit.Override{Mode: new(ratelimit.ModeShadow)}); err != nil {
		fmt.Println(err)
	}
	try("in shadow mode:")
	limiter.Overrides().ClearLocal("search", "")
	try("as written:")
	// Output:
	// as written: true <nil>
	// as written: false <nil>
	// raised: true <nil>
	// in shadow mode: true <nil>
	// as written: false <nil>
}

func ExampleWithTrigger() {
	limiter := ratelimit.New(noon(), ratelimit.WithTrigger(func(_ context.Context, t ratelimit.Trigger) {
		fmt.Println(t.Key, "has", t.Used, "of", t.Limit, "points")
	}))
	points := ratelimit.Rule{Name: "points", Limit: 1000, Per: 3 * time.Second, Mode: ratelimit.ModeTrigger}

	for range 4 { // all four pass; the third one reaches the limit
		_, _ = limiter.Allow(context.Background(), ratelimit.Request{Rule: points, Key: "ann", Cost: 400})
	}
	// Output:
	// ann has 1200 of 1000 points
}

// An observer sees every decision, and which calls a rule in shadow mode would have refused.
func ExampleWithObserver() {
	limiter := ratelimit.New(noon(), ratelimit.WithObserver(func(_ context.Context, e *ratelimit.Event) {
		for _, rule := range e.Rules {
			fmt.Println(e.Kind, rule.Rule, rule.Mode, rule.Refused)
		}
	}))
	stricter := ratelimit.Rule{Name: "stricter", Limit: 1, Per: time.Minute, Mode: ratelimit.ModeShadow}

	for range 2 {
		_, _ = limiter.Allow(context.Background(), ratelimit.Request{Rule: stricter, Key: "ann"})
	}
	// Output:
	// admitted stricter shadow false
	// admitted stricter shadow true
}

// Not every store can decide every rule: check them when the program starts.
func ExampleLimiter_Check() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"}) // Check sends nothing to it
	defer client.Close()
	limiter := ratelimit.New(plain.New(client), ratelimit.WithPrefix("shop"))

	err := limiter.Check(
		ratelimit.Rule{Name: "day", Limit: 10, Cron: "@daily"},
		ratelimit.Rule{Name: "minute", Limit: 1, Per: time.Minute},
	)
	fmt.Println(err)
	// Output:
	// rule "minute": algorithm: without scripts only fixed-window and calendar windows can be counted exactly
}

func ExampleLimiter_Peek() {
	ctx, limiter := context.Background(), ratelimit.New(noon())
	search := ratelimit.Request{Rule: ratelimit.Rule{Name: "search", Limit: 10, Per: time.Minute}, Key: "ann"}
	_, _ = limiter.Allow(ctx, search)

	decision, err := limiter.Peek(ctx, search) // charges nothing
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, quota := range decision.Quotas {
		fmt.Printf("%d of %d left; all of them in %s\n", quota.Remaining, quota.Limit, quota.Reset)
	}
	// Output:
	// 9 of 10 left; all of them in 1m0s
}

func ExampleLimiter_Reset() {
	ctx, limiter := context.Background(), ratelimit.New(noon())
	login := ratelimit.Request{Rule: ratelimit.Rule{Name: "login", Limit: 1, Per: time.Hour}, Key: "ann"}
	for range 2 {
		decision, _ := limiter.Allow(ctx, login)
		fmt.Println(decision.Allowed)
	}

	found, err := limiter.Reset(ctx, login)
	fmt.Println(found, err)
	decision, _ := limiter.Allow(ctx, login)
	fmt.Println(decision.Allowed)
	// Output:
	// true
	// false
	// 1 <nil>
	// true
}

func ExampleDecision_Refund() {
	ctx, limiter := context.Background(), ratelimit.New(noon())
	export := ratelimit.Request{Rule: ratelimit.Rule{Name: "export", Limit: 1, Per: 24 * time.Hour}, Key: "ann"}
	decision, err := limiter.Allow(ctx, export)
	if err != nil || !decision.Allowed {
		return
	}
	// The export fails. It should not cost the day's permit.
	if err := decision.Refund(ctx); err != nil {
		fmt.Println(err)
	}
	again, _ := limiter.Allow(ctx, export)
	fmt.Println(again.Allowed)
	// Output:
	// true
}

func ExampleDecision_Settle() {
	ctx, limiter := context.Background(), ratelimit.New(noon())
	tokens := ratelimit.Request{Rule: ratelimit.Rule{Name: "tokens", Limit: 1000, Per: time.Minute}, Key: "ann", Cost: 400}
	decision, err := limiter.Allow(ctx, tokens) // 400 is an estimate
	if err != nil || !decision.Allowed {
		return
	}
	if err := decision.Settle(ctx, 150); err != nil { // it really cost 150
		fmt.Println(err)
	}
	left, _ := limiter.Peek(ctx, tokens)
	fmt.Println(left.Quotas[0].Remaining)
	// Output:
	// 850
}

func ExampleWithReport() {
	limiter := ratelimit.New(noon())
	ctx, report := ratelimit.WithReport(context.Background())

	// Somewhere below, a wrapped service asks the limiter.
	search := ratelimit.Rule{Name: "search", Limit: 10, Per: time.Minute}
	_, _ = limiter.Allow(ctx, ratelimit.Request{Rule: search, Key: "ann"})

	for _, quota := range report.Quotas() {
		fmt.Println(quota.Rule, quota.Remaining, "left")
	}
	// Output:
	// search 9 left
}
