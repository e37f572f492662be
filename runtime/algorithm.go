package ratelimit

import (
	"fmt"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Algorithm is how a rule counts.
type Algorithm uint8

const (
	// SlidingWindow admits Limit permits in any span of Per, exactly. It keeps the time of each permit.
	SlidingWindow Algorithm = iota
	// FixedWindow admits Limit permits in a window that the first admitted call opens and that lasts Per. Around the end of
	// a window up to twice the limit may pass within a moment.
	FixedWindow
	// Calendar admits Limit permits between two fire times of Cron. A rule with Cron has it by itself.
	Calendar
	// TokenBucket holds up to Burst permits and gains Limit of them in each Per, evenly spread.
	TokenBucket
	// LeakyBucket lets permits leave evenly spaced, Limit of them in each Per.
	LeakyBucket
	// SlidingCounter is SlidingWindow with Per cut into slices: less exact, never above the limit, of constant size.
	SlidingCounter
)

// algorithms has a row for each algorithm. How they count is in package engine, which says how to add one.
var algorithms = [...]struct {
	word string      // in directives
	kind engine.Kind // without distinct, prepay and warmup
	tag  string      // in front of the window in keys; "" or a word and a colon
	most int64       // the largest limit
}{
	SlidingWindow:  {"sliding-window", engine.SlidingWindow, "", maxSlidingLimit},
	FixedWindow:    {"fixed-window", engine.FixedWindow, "fixed:", maxLimit},
	Calendar:       {"calendar", engine.Calendar, "", maxLimit},
	TokenBucket:    {"token-bucket", engine.Bucket, "bucket:", maxBucketLimit},
	LeakyBucket:    {"leaky-bucket", engine.Bucket, "leaky:", maxBucketLimit},
	SlidingCounter: {"sliding-counter", engine.SlidingCounter, "counter:", maxLimit},
}

// String returns the word that directives use.
func (a Algorithm) String() string {
	if int(a) < len(algorithms) {
		return algorithms[a].word
	}
	return fmt.Sprintf("Algorithm(%d)", a)
}

// effective returns how the rule counts: a rule with Cron counts in calendar windows.
func (r *Rule) effective() Algorithm {
	if r.Cron != "" {
		return Calendar
	}
	return r.Algorithm
}

func (r *Rule) kind() engine.Kind {
	switch {
	case r.Distinct != "" && r.Cron != "":
		return engine.DistinctCalendar
	case r.Distinct != "":
		return engine.Distinct
	case r.Warmup > 0:
		return engine.Warmup
	case r.Prepay:
		return engine.Prepaid
	default:
		return algorithms[r.effective()].kind
	}
}
