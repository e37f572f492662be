// Tokens shows budgets of tokens for a language model that streams its answers. A call is charged an estimate, and what it has really cost
// when its stream has ended. An answer without a bound is charged by steps while it streams. The directives are in model.go, the client in
// client.go, and the model is the server in server.go.
//
// Three processes ask at the same time if REDIS_URL is set. Without it, three goroutines do, and count in this process:
//
//	go run .
//	REDIS_URL=redis://127.0.0.1:6379 go run .
//
// It prints what the model has seen beside what was counted, and which rule refused.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// The environment of a process that asks: where the model is, and the prefix of the keys in Redis.
const (
	modelVariable  = "TOKENS_MODEL"
	prefixVariable = "TOKENS_PREFIX"
)

func main() {
	if err := run(os.Stdout, os.Getenv("REDIS_URL")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run counts on the Redis server at a URL, or in this process if the URL is "". The read_timeout in the URL limits the time of a decision.
func run(out io.Writer, url string) error {
	// A real program always uses the same prefix. This one uses a new prefix each time, so that its output is always the same.
	prefix := cmp.Or(os.Getenv(prefixVariable), fmt.Sprintf("tokens-demo-%d", time.Now().UnixMicro()))
	store := memstore.New()
	if url != "" {
		options, err := redis.ParseURL(url)
		if err != nil {
			return fmt.Errorf("REDIS_URL: %w", err)
		}
		client := redis.NewClient(options)
		defer client.Close()
		store = redisstore.New(client, redisstore.WithTimeout(cmp.Or(options.ReadTimeout, 250*time.Millisecond)))
	}
	limiter := ratelimit.New(store, ratelimit.WithPrefix(prefix))
	if model := os.Getenv(modelVariable); model != "" {
		return work(limiter, model)
	}
	far := &farSide{seen: map[string]seen{}}
	server := httptest.NewServer(far)
	defer server.Close()
	ask := func() error { return work(limiter, server.URL) }
	if url != "" {
		ask = func() error { return start(server.URL, prefix) }
	}
	var all sync.WaitGroup
	failed := make([]error, workers)
	for i := range failed {
		all.Go(func() { failed[i] = ask() })
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return tell(out, limiter, far, server.URL)
}

// start runs another process of this program, which asks the model.
func start(model, prefix string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	process := exec.Command(self)
	process.Env = append(os.Environ(), modelVariable+"="+model, prefixVariable+"="+prefix)
	process.Stderr = os.Stderr
	return process.Run()
}

const (
	workers = 3
	rounds  = 3 // of each worker
)

var users = []Request{
	{Org: "acme", Team: "search", User: "ann", Prompt: "the quick brown fox jumps", MaxOutput: 3000},
	{Org: "acme", Team: "search", User: "bob", Prompt: "over the lazy dog", MaxOutput: 3000},
	{Org: "acme", Team: "maps", User: "cleo", Prompt: "where is the nearest river", MaxOutput: 3},
}

// work asks for each user.
func work(limiter *ratelimit.Limiter, url string) error {
	model := NewLimitedModel(client{url}, limiter)
	for range rounds {
		for i := range users {
			if err := ask(model, &users[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask reads an answer, and settles what it has cost.
func ask(model Model, req *Request) error {
	ctx, charge := ratelimit.WithCharge(context.Background())
	answer, err := model.Ask(ctx, req)
	if err != nil {
		return err
	}
	defer answer.Close()
	for err == nil {
		_, err = answer.Next()
	}
	if err != io.EOF {
		return err // the estimate stays charged
	}
	if err := charge.Settle(ctx, answer.Usage.Input, "org-input"); err != nil {
		return err
	}
	return charge.Settle(ctx, answer.Usage.Output, "org-output", "team-output", "user-output")
}

// stream reads an answer without a bound, and returns how many tokens it has read. It charges each step before it reads it.
func stream(model Model, req *Request) (read int64, err error) {
	ctx, charge := ratelimit.WithCharge(context.Background())
	answer, err := model.Ask(ctx, req)
	if err != nil {
		return 0, err
	}
	defer answer.Close()
	if err := charge.Settle(ctx, int64(req.InputTokens()), "org-input"); err != nil { // Add leaves it out from here on
		return 0, err
	}
	defer func() { err = errors.Join(err, charge.Settle(ctx, read)) }() // gives back what is left of the last step
	for {
		if read > 0 && read%step == 0 {
			if err := charge.Add(ctx, step); err != nil {
				return read, err
			}
		}
		words, err := answer.Next()
		switch {
		case err == io.EOF:
			return read, nil
		case err != nil:
			return read, err
		}
		read += int64(len(strings.Fields(words)))
	}
}

// tell prints what the model has seen beside what was counted, and then a refusal.
func tell(out io.Writer, limiter *ratelimit.Limiter, far *farSide, url string) error {
	fmt.Fprintf(out, "%-14s%-13s%10s%9s\n", "RULE", "KEY", "MODEL SAW", "COUNTED")
	for _, rule := range ModelRules() {
		shown := map[string]bool{}
		for _, user := range users {
			key, saw := budget(rule.Name, user, far)
			if shown[key] {
				continue
			}
			shown[key] = true
			d, err := limiter.Peek(context.Background(), ratelimit.Request{Rule: rule, Key: key})
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%-14s%-13s%10d%9d\n", rule.Name, key, saw, rule.Limit-d.Quotas[0].Remaining)
		}
	}
	large := users[0]
	large.MaxOutput = 11_000
	refused, ok := errors.AsType[*ratelimit.TooManyRequestsError](ask(NewLimitedModel(client{url}, limiter), &large))
	if !ok {
		return errors.New("expected a refusal")
	}
	fmt.Fprintln(out, "Ann asks for 11000 tokens more: refused by", refused.Violations[0])
	story := Request{Org: "acme", Team: "search", User: "bob", Prompt: strings.Repeat("and then ", 10_000)}
	read, err := stream(NewLimitedModel(client{url}, limiter), &story)
	if refused, ok = errors.AsType[*ratelimit.TooManyRequestsError](err); !ok {
		return cmp.Or(err, errors.New("expected a refusal"))
	}
	fmt.Fprintf(out, "Bob reads %d tokens of a story of 20000, in steps of %d: refused by %v\n", read, step, refused.Violations[0])
	return nil
}

// budget returns the key of a user's budget under a rule, and what the model has seen of all users with that key.
func budget(rule string, user Request, far *farSide) (key string, saw int64) {
	level, what, _ := strings.Cut(rule, "-")
	keyOf := func(r Request) string {
		return map[string]string{"org": r.Org, "team": r.Org + "/" + r.Team, "user": r.User}[level]
	}
	key = keyOf(user)
	for _, other := range users {
		if keyOf(other) == key {
			s := far.of(other.User)
			saw += map[string]int64{"requests": s.requests, "input": s.input, "output": s.output}[what]
		}
	}
	return key, saw
}
