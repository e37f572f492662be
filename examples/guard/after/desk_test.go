package desk_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	desk "github.com/ratelimit-go/ratelimit/examples/guard/after"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// model is a Model that a test controls.
type model func(ctx context.Context, prompt string) (string, int, error)

func (m model) Complete(ctx context.Context, prompt string) (string, int, error) {
	return m(ctx, prompt)
}

// charged returns how many permits of a rule team has used.
func charged(t *testing.T, limiter *ratelimit.Limiter, name, team string) int64 {
	t.Helper()
	for _, rule := range desk.DeskRules() {
		if rule.Name == name {
			d, err := limiter.Peek(t.Context(), ratelimit.Request{Rule: rule, Key: team})
			if err != nil {
				t.Fatal(err)
			}
			return d.Quotas[0].Limit - d.Quotas[0].Remaining
		}
	}
	t.Fatalf("no rule %s", name)
	return 0
}

// An answer is charged its tokens, a failure nothing but the try.
func TestAnswersAreSettled(t *testing.T) {
	limiter := ratelimit.New(memstore.New())
	failed := errors.New("the model is down")
	d := desk.New(model(func(_ context.Context, prompt string) (string, int, error) {
		if prompt == "fail" {
			return "", 0, failed
		}
		return "yes", 120, nil
	}), limiter)
	if answer, err := d.Ask(t.Context(), "ops", "is it on?"); err != nil || answer.Text != "yes" {
		t.Fatal(answer, err)
	}
	if _, err := d.Ask(t.Context(), "ops", "fail"); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	if _, err := d.Ask(t.Context(), "ops", ""); err == nil {
		t.Fatal("an empty question is answered")
	}
	for name, want := range map[string]int64{"tokens": 120, "answers": 1, "running": 0} {
		if got := charged(t, limiter, name, "ops"); got != want {
			t.Errorf("%d permits of %s are charged, want %d", got, name, want)
		}
	}
	if got := charged(t, limiter, "model", ""); got != 2 {
		t.Errorf("the model was asked %d times, want 2", got)
	}
}

// A third question at the same time is refused with the rule's message. A panic gives its permit back.
func TestQuestionsAtTheSameTime(t *testing.T) {
	limiter := ratelimit.New(memstore.New())
	began, end := make(chan bool), make(chan bool)
	d := desk.New(model(func(context.Context, string) (string, int, error) {
		began <- true
		if <-end {
			panic("the model's client is broken")
		}
		return "", 0, nil
	}), limiter)
	ended := make(chan any)
	for range 2 {
		go func() {
			defer func() { ended <- recover() }()
			_, _ = d.Ask(context.Background(), "ops", "why?")
		}()
		<-began
	}
	w := httptest.NewRecorder()
	desk.Handler(d)(w, httptest.NewRequest(http.MethodGet, "/ask?team=ops&q=when", nil))
	if w.Code != http.StatusTooManyRequests || !strings.Contains(w.Body.String(), "Two questions of ops are being answered.") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	end <- true
	end <- false
	if one, other := <-ended, <-ended; (one == nil) == (other == nil) {
		t.Errorf("the calls ended with %v and %v", one, other)
	}
	if got := charged(t, limiter, "running", "ops"); got != 0 {
		t.Errorf("%d permits are held after the calls", got)
	}
}

// quiet is an error of the model's client, which says how long to wait.
type quiet time.Duration

func (q quiet) Error() string             { return "too busy" }
func (q quiet) RetryAfter() time.Duration { return time.Duration(q) }

// The model asks for quiet: the next questions do not reach it.
func TestTheModelAsksForQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		d := desk.New(model(func(context.Context, string) (string, int, error) {
			calls++
			if calls == 1 {
				return "", 0, quiet(30 * time.Second)
			}
			return "yes", 1, nil
		}), ratelimit.New(memstore.New()))
		_, err := d.Ask(t.Context(), "ops", "first")
		if _, ok := errors.AsType[quiet](err); !ok {
			t.Errorf("got %v; expected the error of the model", err)
		}
		_, err = d.Ask(t.Context(), "dev", "second")
		limittest.RequireRefused(t, err)
		if calls != 1 {
			t.Errorf("the model was asked %d times", calls)
		}
		time.Sleep(30 * time.Second)
		_, err = d.Ask(t.Context(), "dev", "third")
		limittest.RequireAllowed(t, err)
	})
}
