package shop

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

// model does in each call what the test says.
type model struct {
	usage *Usage
	does  func() error
}

func (m *model) Ask(context.Context) (*Usage, error) { return m.usage, m.does() }
func (m *model) Stream(context.Context) error        { return m.does() }
func (m *model) Print(context.Context) error         { return m.does() }
func (m *model) Render(context.Context) error        { return m.does() }
func (m *model) Export(context.Context) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader("rows")), m.does()
}

func TestDirectives(t *testing.T) {
	limiter, clock := limittest.New(t)
	m := new(model)
	answers := NewLimitedAnswers(m, limiter)
	expectLeft := func(name string, left int64) {
		t.Helper()
		rules := AnswersRules()
		i := slices.IndexFunc(rules, func(r ratelimit.Rule) bool { return r.Name == name })
		d, err := limiter.Peek(t.Context(), ratelimit.Request{Rule: rules[i]})
		if err != nil || d.Quotas[0].Remaining != left {
			t.Errorf("%s: got %+v, error %v; expected %d left", name, d.Quotas, err, left)
		}
	}

	m.does = func() error {
		expectLeft("tokens", 60) // charged
		return nil
	}
	for cost, left := range map[int64]int64{25: 75, 70: 30, 170: 0} {
		m.usage = &Usage{cost}
		_, err := answers.Ask(t.Context())
		limittest.RequireAllowed(t, err)
		expectLeft("tokens", left) // settled
		clock.Advance(time.Hour)
	}

	m.does = func() error { return nil }
	ctx, cancel := context.WithCancel(t.Context())
	ctx, charge := ratelimit.WithCharge(ctx)
	limittest.RequireAllowed(t, answers.Stream(ctx))
	expectLeft("streamed", 60) // nobody has settled it
	cancel()
	for _, cost := range []int64{70, 0} {
		limittest.RequireAllowed(t, charge.Settle(ctx, cost))
		expectLeft("streamed", 30) // the first settlement counts, also under a context that has ended
	}

	ctx, charge = ratelimit.WithCharge(t.Context())
	clock.Advance(time.Hour)
	limittest.RequireAllowed(t, answers.Stream(ctx))
	limittest.RequireAllowed(t, charge.Add(ctx, 20))
	expectLeft("streamed", 40) // grown
	limittest.RequireRefused(t, charge.Add(ctx, 41), "streamed")
	limittest.RequireAllowed(t, charge.Settle(ctx, 50))
	expectLeft("streamed", 50) // the settlement says the whole cost

	m.usage, m.does = nil, func() error { return io.EOF }
	_, _ = answers.Ask(t.Context())
	expectLeft("tokens", 100) // settled after an error
	_ = answers.Print(t.Context())
	expectLeft("pages", 100) // refunded after an error
	m.does = func() error { panic("no paper") }
	for _, call := range []func(){func() { _ = answers.Print(t.Context()) }, func() { _, _ = answers.Ask(t.Context()) }} {
		func() {
			defer func() { _ = recover() }()
			call()
		}()
	}
	expectLeft("pages", 100) // refunded after a panic
	expectLeft("tokens", 60) // not settled after a panic

	m.does = func() error {
		expectLeft("renders", 1) // held
		return nil
	}
	limittest.RequireAllowed(t, answers.Render(t.Context()))
	expectLeft("renders", 2) // released
	m.does = func() error { return nil }
	rows, err := answers.Export(t.Context())
	limittest.RequireAllowed(t, err)
	expectLeft("exports", 1) // held by the rows
	limittest.RequireAllowed(t, rows.Close())
	expectLeft("exports", 2) // released
}

func TestDecisions(t *testing.T) {
	limiter, _ := limittest.New(t)
	tokens := ratelimit.Request{Rule: ratelimit.Rule{Name: "tokens", Limit: 100, Per: time.Hour}, Cost: 40}
	runs := ratelimit.Request{Rule: ratelimit.Rule{Name: "runs", Limit: 2, Algorithm: ratelimit.Concurrency}}
	expectLeft := func(err error, ofTokens, ofRuns int64) {
		t.Helper()
		limittest.RequireAllowed(t, err)
		d, err := limiter.Peek(t.Context(), tokens, runs)
		if err != nil || d.Quotas[0].Remaining != ofTokens || d.Quotas[1].Remaining != ofRuns {
			t.Errorf("got %+v, error %v; expected %d and %d left", d.Quotas, err, ofTokens, ofRuns)
		}
	}
	d, err := limiter.Allow(t.Context(), tokens, runs)
	expectLeft(err, 60, 1)
	expectLeft(d.Settle(t.Context(), 25, 1), 75, 1)
	expectLeft(d.Release(t.Context()), 75, 2)
	expectLeft(d.Refund(t.Context()), 100, 2)
	expectLeft(d.Settle(t.Context(), 70, 1), 100, 2) // no settlement comes after a refund

	_, err = limiter.Allow(t.Context(), tokens)
	expectLeft(err, 60, 2)
	expectLeft(limiter.Give(t.Context(), 10, tokens), 70, 2)
	expectLeft(limiter.Give(t.Context(), 50, tokens), 100, 2) // all that were taken
	expectLeft(limiter.Give(t.Context(), -130, tokens), 0, 2)
	_, err = limiter.Allow(t.Context(), tokens, runs) // refused by tokens, so runs charges nothing
	expectLeft(err, 0, 2)
}
