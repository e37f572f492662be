package ratelimit

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/memory"
)

// counted is a store whose servers count what is done.
type counted struct {
	Store
	times map[string]int
}

func (c counted) Lately(what string) int {
	c.times[what]++
	return c.times[what]
}

// A program that makes a limiter for each request is told so, once. One that makes a limiter for each prefix is not.
func TestLimiterForEachRequest(t *testing.T) {
	decide.WarnedOfMany.Store(false)
	defer decide.WarnedOfMany.Store(false)
	var log bytes.Buffer
	store := counted{memory.New(nil, 100, 1<<20), map[string]int{}}
	logger := WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
	for i := range 200 {
		New(store, logger, WithPrefix(string(rune('a'+i))))
	}
	if log.Len() > 0 {
		t.Errorf("limiters of different prefixes are logged: %s", log.Bytes())
	}
	for i := range 250 {
		New(store, logger)
		if told := bytes.Contains(log.Bytes(), []byte("one limiter")); told != (i >= 100) {
			t.Fatalf("after %d limiters the log is %q", i+1, log.String())
		}
	}
	if n := bytes.Count(log.Bytes(), []byte("\n")); n != 1 {
		t.Errorf("%d lines are logged, want 1: %s", n, log.Bytes())
	}
}
