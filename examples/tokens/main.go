// Tokens shows budgets of tokens for a language model that streams its answers. A call is charged an estimate, and what it has really cost
// when its stream has ended. The directives are in model.go, the model is a server in this program. It counts in this process, or on Redis if
// REDIS_URL is set:
//
//	go run .
//	REDIS_URL=redis://127.0.0.1:6379 go run .
//
// It prints which rule refused, and what the model has seen beside what was counted.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

func main() {
	if err := run(os.Stdout, os.Getenv("REDIS_URL")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(out io.Writer, url string) error {
	store := memstore.New()
	if url != "" {
		options, err := redis.ParseURL(url)
		if err != nil {
			return fmt.Errorf("REDIS_URL: %w", err)
		}
		client := redis.NewClient(options)
		defer client.Close()
		store = redisstore.New(client)
	}
	return tell(out, ratelimit.New(store, ratelimit.WithPrefix("tokens")))
}

// farSide is the model: a token of output for each word of the prompt, at most max. It adds up what it has seen.
type farSide struct{ input, output int64 }

func (f *farSide) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	words := strings.Fields(r.FormValue("prompt"))
	most, _ := strconv.Atoi(r.FormValue("max"))
	output := min(len(words), most)
	for _, word := range words[:output] {
		fmt.Fprintln(w, strings.ToUpper(word))
	}
	f.input, f.output = f.input+int64(len(words)), f.output+int64(output)
	fmt.Fprintf(w, "usage %d %d\n", len(words), output)
}

// tell asks until a rule refuses, and prints what was counted.
func tell(out io.Writer, limiter *ratelimit.Limiter) error {
	far := new(farSide)
	server := httptest.NewServer(far)
	defer server.Close()
	model := NewLimitedModel(client{server.URL}, limiter)
	for _, most := range []int{10_000, 10_000, 10_000, 11_000} {
		err := ask(model, &Request{Org: "acme", Team: "search", User: "ann", Prompt: "the quick brown fox jumps", MaxOutput: most})
		if refused, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); ok {
			fmt.Fprintln(out, "refused by", refused.Violations[0])
		} else if never, ok := errors.AsType[*ratelimit.NeverAdmissibleError](err); ok {
			fmt.Fprintln(out, never)
		} else if err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "the model has seen %d tokens of input and %d of output\n", far.input, far.output)
	keys := map[string]string{"org-input": "acme", "org-output": "acme", "team-output": "acme/search", "user-requests": "ann", "user-output": "ann"}
	for _, rule := range ModelRules() {
		d, err := limiter.Peek(context.Background(), ratelimit.Request{Rule: rule, Key: keys[rule.Name]})
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "%s has counted %d\n", rule.Name, rule.Limit-d.Quotas[0].Remaining)
	}
	return nil
}

// ask reads an answer, and settles what it has cost.
func ask(model Model, req *Request) error {
	ctx, charge := ratelimit.WithCharge(context.Background())
	stream, err := model.Ask(ctx, req)
	if err != nil {
		return err
	}
	input, output, err := usage(stream)
	if err != nil {
		return err
	}
	if err := charge.Settle(ctx, input, "org-input"); err != nil {
		return err
	}
	return charge.Settle(ctx, output, "org-output", "team-output", "user-output")
}
