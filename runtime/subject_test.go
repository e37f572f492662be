package ratelimit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

var secret = []byte("0123456789abcdef0123456789abcdef")

// hashOf is the output of printf 5550100 | openssl dgst -sha256 -hmac 0123456789abcdef0123456789abcdef: its first 16 bytes in the encoding of
// basenc --base64url.
const (
	phone  = "5550100"
	hashOf = "YxvVNcHDQTqH9KEimypTPQ"
)

// heard collects all texts of a limiter: errors, events, quotas and logs in all their forms.
type heard struct{ bytes.Buffer }

func (h *heard) add(v any) {
	fmt.Fprintf(h, "%v %+v ", v, v)
	if text, err := json.Marshal(v); err == nil {
		h.Write(text)
	}
	slog.New(slog.NewJSONHandler(h, nil)).Info("", "v", v)
}

func (h *heard) observe(_ context.Context, e *ratelimit.Event) { h.add(*e) }

// limiter returns a limiter that hashes subjects, and whose events and logs go to h. The logs show keys as the limiter has them.
func (h *heard) limiter() *ratelimit.Limiter {
	logger := slog.New(slog.NewTextHandler(h, nil))
	return ratelimit.New(memstore.New(), ratelimit.WithSubjectHash(secret), ratelimit.WithLogger(logger), ratelimit.WithObserver(h.observe),
		ratelimit.WithObserver(ratelimit.SlogObserver(logger, slog.LevelInfo, ratelimit.WithPlainKeys())),
		ratelimit.WithTrigger(func(_ context.Context, t ratelimit.Trigger) { h.add(t) }))
}

// provoke makes a limiter return every answer and error that contains the key of a subject.
func (h *heard) provoke(t *testing.T, rule ratelimit.Rule) {
	l := h.limiter()
	ctx, report := ratelimit.WithReport(t.Context())
	request := ratelimit.Request{Rule: rule, Key: phone}
	watched := request
	watched.Rule.Name, watched.Rule.Mode = "watched", ratelimit.ModeTrigger
	members := request
	members.Rule.Name, members.Rule.Distinct, members.Member = "members", "{friend}", phone
	for range 2 {
		d, err := l.Allow(ctx, request, watched)
		h.add(d)
		h.add(err)
	}
	_, err := l.Allow(ctx, members)
	h.add(err)
	peeked, err := l.Peek(ctx, request)
	h.add(peeked)
	h.add(err)
	soon, cancel := context.WithTimeout(ctx, time.Minute) // before the window ends, so that the call does not wait
	defer cancel()
	_, err = l.Wait(soon, request)
	if refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); ok {
		h.add(refusal.LogValue())
	}
	if rule.Hash == ratelimit.HashSubject {
		limits := wrap.NewRules("p.T.M", rule).On(l)
		err = wrap.Describe(limits, err, "No more codes for "+wrap.Shown(limits, phone)+".")
	}
	h.add(err)
	expensive := request
	expensive.Cost = 5
	_, err = l.Allow(ctx, expensive)
	h.add(err)
	if err := l.Block(ctx, time.Hour, request); err != nil {
		t.Error(err)
	}
	blocked, err := l.Allow(ctx, request)
	h.add(blocked)
	h.add(err)
	if err := l.Unblock(ctx, request); err != nil {
		t.Error(err)
	}
	h.add(report.Quotas())
	if n, err := l.Reset(ctx, request); n != 1 || err != nil {
		t.Errorf("reset %d counts, %v", n, err)
	}
	if d, err := l.Allow(ctx, request); !d.Allowed || err != nil {
		t.Errorf("after Unblock and Reset: %+v, %v", d, err)
	}
}

// Under WithSubjectHash no text shows a subject, and its calls are counted as before.
func TestSubjectHash(t *testing.T) {
	var h heard
	h.provoke(t, ratelimit.Rule{Name: "code", Limit: 1, Per: time.Hour})
	if strings.Contains(h.String(), phone) {
		t.Errorf("a subject is shown: %s", h.String())
	}
	if n := strings.Count(h.String(), hashOf); n < 20 {
		t.Errorf("the hash is shown %d times: %s", n, h.String())
	}
}

// A rule with HashNever is exempt.
func TestSubjectHashExemption(t *testing.T) {
	var h heard
	h.provoke(t, ratelimit.Rule{Name: "code", Limit: 1, Per: time.Hour, Hash: ratelimit.HashNever})
	if strings.Contains(h.String(), hashOf) || strings.Count(h.String(), phone) < 20 {
		t.Errorf("the subject is hashed: %s", h.String())
	}
}

// The error of an expression may contain the subject. The text leaves out that cause, but errors.Is still finds it.
func TestSubjectHashOfFailures(t *testing.T) {
	var h heard
	rules := wrap.NewRules("p.T.M", ratelimit.Rule{Key: "{int(phone)}", Limit: 1, Per: time.Hour})
	cause := fmt.Errorf("int(%s): %w", phone, io.ErrUnexpectedEOF)
	l := h.limiter()
	err := wrap.Failed(t.Context(), rules.On(l), rules.KeyError("int(phone)", cause))
	h.add(err)
	taken, begun := wrap.Begin(t.Context(), rules.On(l), rules, wrap.Charge{Key: phone, Cost: 1})
	if begun != nil {
		t.Fatal(begun)
	}
	taken.SettleFailed(t.Context(), 0, rules.KeyError("int(phone)", cause))
	if !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(h.String(), phone) || strings.Count(h.String(), "int(phone)") < 3 {
		t.Errorf("%v: %s", err, h.String())
	}
	plain := rules.KeyError("int(phone)", cause)
	if err := wrap.Failed(t.Context(), rules.On(ratelimit.New(memstore.New())), plain); err != plain {
		t.Errorf("without a secret: %v", err)
	}
}

// Without a secret, messages show keys as they are, but printable.
func TestShownWithoutSecret(t *testing.T) {
	limits := wrap.NewRules("a", ratelimit.PerHour(1)).On(ratelimit.New(memstore.New()))
	if got := wrap.Shown(limits, "a\n"); got != `a\n` {
		t.Errorf("got %q", got)
	}
}

// BenchmarkSubjectHash makes decisions with and without a secret. The difference is the cost of WithSubjectHash.
func BenchmarkSubjectHash(b *testing.B) {
	rule := ratelimit.Rule{Name: "a", Algorithm: ratelimit.TokenBucket, Limit: 10_000_000, Per: time.Second}
	for name, options := range map[string][]ratelimit.Option{"without": nil, "with": {ratelimit.WithSubjectHash(secret)}} {
		b.Run(name, func(b *testing.B) {
			l, ctx := ratelimit.New(memstore.New(), options...), context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Allow(ctx, ratelimit.Request{Rule: rule, Key: "+8613800138000"}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A call and its refund count for the same hashed subject as a Peek.
func TestSubjectHashOfCalls(t *testing.T) {
	store, ctx := memstore.New(), t.Context()
	request := ratelimit.Request{Rule: ratelimit.Rule{Name: "a", Limit: 5, Per: time.Hour}, Key: phone}
	hashing := ratelimit.New(store, ratelimit.WithSubjectHash(secret))
	plain := ratelimit.New(store)
	used := func() int64 {
		request := request
		request.Key = hashOf
		d, err := plain.Peek(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		return d.Quotas[0].Limit - d.Quotas[0].Remaining
	}
	if d, err := hashing.Allow(ctx, request); err != nil || used() != 1 {
		t.Errorf("%+v, %v: %d used", d, err, used())
	}
	d, err := hashing.Allow(ctx, request)
	if err != nil || used() != 2 {
		t.Errorf("%v: %d used", err, used())
	}
	if err := d.Refund(ctx); err != nil || used() != 1 {
		t.Errorf("%v: %d used", err, used())
	}
}

// With WithShownKeys a limiter accepts keys as they are shown, even those of long or unprintable keys. Any other key is used as it is.
func TestShownKeys(t *testing.T) {
	store, rule := memstore.New(), ratelimit.Rule{Name: "r", Limit: 5, Per: time.Hour}
	program, tool := ratelimit.New(store), ratelimit.New(store, ratelimit.WithShownKeys())
	for _, text := range []string{"ann", "a{\x1b", "100%", "%all", strings.Repeat("x{", 100), ""} {
		d, err := program.Allow(t.Context(), ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 0, Per: time.Hour}, Key: text})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := program.Allow(t.Context(), ratelimit.Request{Rule: rule, Key: text}); err != nil {
			t.Fatal(err)
		}
		for key, used := range map[string]int64{d.Violations[0].Key: 1, text + "}": 0} {
			d, err := tool.Peek(t.Context(), ratelimit.Request{Rule: rule, Key: key})
			if err != nil || d.Quotas[0].Remaining != 5-used {
				t.Errorf("%q shown as %q: %+v, error %v", text, key, d, err)
			}
		}
	}
}
