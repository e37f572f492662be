package ratelimit

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"strconv"
	"sync"
	"time"
)

// defaultLines is the largest number of lines that an observer logs in a second.
const defaultLines = 10

// slogger is the state of a SlogObserver.
type slogger struct {
	logger    *slog.Logger
	level     slog.Level
	plain     bool  // keys are shown as they are
	perSecond int64 // lines a second

	mu     sync.Mutex
	second int64 // the second in which lines are counted
	lines  int64
	left   int64 // events that were left out since the last line
}

// SlogOption changes what [SlogObserver] logs.
type SlogOption func(*slogger)

// WithPlainKeys logs keys as they are. Without this option a log shows a hash of each key, under a secret of the process, and no cause of a
// [KeyError], which may name a key. A reader can then tell the lines of different keys apart, but learns no phone number.
func WithPlainKeys() SlogOption { return func(s *slogger) { s.plain = true } }

// WithLinesPerSecond sets the largest number of lines in a second, instead of 10. If events were left out, the next line says how many. An n
// below 1 means 1.
func WithLinesPerSecond(n int) SlogOption {
	return func(s *slogger) { s.perSecond = int64(max(1, n)) }
}

// SlogObserver returns an observer for [WithObserver] that logs refusals and failures. A refusal is logged with the delay and the rules that
// refused, in the fields rule, rule2 and so on. Failures are calls that were not decided, gave up waiting, or were decided by a
// [FailurePolicy], and refunds and settlements that failed. Those have their rules in the same fields, with cost and cost_before. A change of settings
// is logged with the first of them, and their number. Admitted calls are not logged. SlogObserver panics if logger is nil.
func SlogObserver(logger *slog.Logger, level slog.Level, options ...SlogOption) func(context.Context, *Event) {
	if logger == nil {
		panic("ratelimit.SlogObserver: the logger is nil")
	}
	s := &slogger{logger: logger, level: level, perSecond: defaultLines}
	for _, option := range options {
		option(s)
	}
	return s.observe
}

func (s *slogger) observe(ctx context.Context, e *Event) {
	if e.Kind != EventRefused && e.Kind != EventChanged && e.Err == nil || !s.logger.Enabled(ctx, s.level) {
		return
	}
	left, ok := s.mayLog(time.Now().Unix())
	if !ok {
		return
	}
	fields := s.fields(e)
	if left > 0 {
		fields = append(fields, slog.Int64("left_out", left))
	}
	s.logger.LogAttrs(ctx, s.level, "rate limit "+e.Kind.String(), fields...)
}

// mayLog reports whether another line may be logged in this second, and how many events were left out since the last line.
func (s *slogger) mayLog(second int64) (left int64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.second != second {
		s.second, s.lines = second, 0
	}
	if s.lines >= s.perSecond {
		s.left++
		return 0, false
	}
	s.lines++
	left, s.left = s.left, 0
	return left, true
}

// logHasher hashes keys in logs. Each process has a secret of its own.
var logHasher = sync.OnceValue(func() *hasher {
	secret := make([]byte, minSecret)
	_, _ = rand.Read(secret) // it never fails
	return newHasher(secret)
})

// shown returns the text that is logged for a key.
func (s *slogger) shown(key string) string {
	if s.plain || key == "" {
		return key
	}
	return logHasher().hash(key)
}

func (s *slogger) fields(e *Event) []slog.Attr {
	fields := filled(slog.String("method", e.Method), slog.String("retry_after", words(e.RetryAfter)), slog.Bool("never", e.Never),
		slog.String("waited", words(e.Waited)))
	fields = append(fields, slog.String("source", e.Source.String()))
	shown := 0
	for i := range e.Rules {
		if o := &e.Rules[i]; o.Refused || o.CostBefore > 0 {
			name := "rule"
			if shown++; shown > 1 {
				name += strconv.Itoa(shown) // a reader of JSON keeps one of several fields of the same name
			}
			fields = append(fields, slog.Any(name, slog.GroupValue(o.fields(s.shown(o.Key))...)))
		}
	}
	if n := len(e.Settings); n > 0 {
		first := e.Settings[0]
		first.Key = s.shown(first.Key)
		text, _ := json.Marshal(first) // its times are those of the store
		fields = append(fields, slog.String("change", e.Change), slog.Any("setting", json.RawMessage(text)), slog.Int("settings", n))
	}
	if err := e.Err; err != nil {
		if !s.plain {
			err = keyless(err)
		}
		fields = append(fields, slog.String("err", oneLine(err.Error())))
	}
	return fields
}

func (o *Outcome) fields(key string) []slog.Attr {
	fields := filled(slog.String("name", o.Rule), slog.String("window", o.Window), slog.String("key", key),
		slog.String("mode", o.Mode.String()), slog.Int64("limit", o.Limit), slog.Int64("cost", o.Cost),
		slog.String("retry_after", words(o.RetryAfter)))
	if o.CostBefore > 0 {
		fields = append(fields, slog.Int64("cost_before", o.CostBefore))
	}
	return fields
}
