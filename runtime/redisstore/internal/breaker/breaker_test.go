package breaker

import (
	"errors"
	"io"
	"testing"

	"pgregory.net/rapid"
)

// Only failures in a row stop calls from trying. Replies are not failures.
func TestBreaker(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, failures := New(Pause), 0
		for range rapid.IntRange(1, 20).Draw(t, "tries") {
			err := rapid.SampledFrom([]error{nil, reply("LOADING"), io.EOF, errors.New("i/o timeout")}).Draw(t, "error")
			tried := false
			got := b.Try(func() error { tried = true; return err })
			if tried != (failures < maxFailures) || tried && got != err || !tried && !errors.As(got, new(Unsent)) {
				t.Fatalf("after %d failures in a row: tried %t, got %v", failures, tried, got)
			}
			if failures++; Reached(err) {
				failures = 0
			}
			if !tried {
				return // calls are not tried for a while
			}
		}
	})
}

type reply string

func (r reply) Error() string { return string(r) }
func (reply) RedisError()     {}
