package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

var update = flag.Bool("update", false, "rewrite testdata/demo.txt")

func TestInProcess(t *testing.T) {
	const golden = "testdata/demo.txt"
	var out bytes.Buffer
	if err := inProcess(&out); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != string(want) {
		t.Errorf("the demonstration has changed; run \"go test -update\" if that is right:\n%s", got)
	}
}

func TestOnRedis(t *testing.T) {
	server := redistest.Start(t)
	for range 2 { // the second run must not find the counts of the first
		var out bytes.Buffer
		if err := onRedis(&out, "redis://"+server.Addr+"?read_timeout=1m"); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			ann + " from " + office + ": sent",
			ann + " from " + office + ": refused: One code a minute. Retry after ",
			`SendCode: 1 per minute for "` + ann + `"`,
			"100 phones from " + cafe + ": 100 sent",
			phone(100) + " from " + cafe + ": refused: A hundred codes an hour for one address.",
			phone(100) + " from " + office + ": sent",
			"the context carries no client IP",
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("missing %q in:\n%s", want, out.String())
			}
		}
	}
}

func TestNoRedis(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	var out bytes.Buffer
	err := onRedis(&out, "redis://"+server.Addr+"?read_timeout=1m")
	if err == nil || !strings.HasPrefix(err.Error(), "REDIS_URL: ") || out.Len() > 0 {
		t.Errorf("got %v and output %q; expected an error that names REDIS_URL, and no output", err, out.String())
	}
}

// counter counts the codes that are sent.
type counter struct{ sent int }

func (c *counter) SendCode(context.Context, string) error { c.sent++; return nil }

func TestRefusedCodesAreNotSent(t *testing.T) {
	now := time.Date(2026, time.March, 2, 15, 59, 0, 0, time.UTC) // a minute before midnight in Shanghai
	limiter := ratelimit.New(memstore.New(memstore.WithClock(func() time.Time { return now })))
	plain := new(counter)
	sender := NewLimitedSender(plain, limiter)
	ctx := ratelimit.WithClientIP(t.Context(), office)
	for i, step := range []struct {
		after time.Duration
		sent  int
	}{
		{0, 1},
		{59 * time.Second, 1},
		{time.Second, 2}, // the first code of the new day
		{time.Minute - 1000, 2},
		{1000, 3},
	} {
		now = now.Add(step.after)
		err := sender.SendCode(ctx, ann)
		if plain.sent != step.sent {
			t.Errorf("step %d: %d codes were sent; expected %d", i, plain.sent, step.sent)
		}
		if refused := errors.Is(err, ratelimit.ErrTooManyRequests); refused != (err != nil) {
			t.Errorf("step %d: %v", i, err)
		}
	}
}
