package ratelimit

import (
	"fmt"
	"strings"

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

// algorithm is what the rest of the package knows of an algorithm. How it counts is in package engine, which says how to add one.
type algorithm struct {
	word  string      // in directives
	kind  engine.Kind // without distinct, prepay and warmup
	tag   string      // in front of the window in keys; "" or a word and a colon
	most  int64       // the largest limit
	takes string      // which arguments go with it, of those that do not go with every algorithm
}

// algorithms has a row for each algorithm.
var algorithms = [...]algorithm{
	SlidingWindow:  {"sliding-window", engine.SlidingWindow, "", maxSlidingLimit, "wait distinct lease trigger"},
	FixedWindow:    {"fixed-window", engine.FixedWindow, "fixed:", maxLimit, "wait lease trigger"},
	Calendar:       {"calendar", engine.Calendar, "", maxLimit, "wait distinct lease trigger"},
	TokenBucket:    {"token-bucket", engine.Bucket, "bucket:", maxBucketLimit, "wait burst prepay warmup queue lease"},
	LeakyBucket:    {"leaky-bucket", engine.Bucket, "leaky:", maxBucketLimit, "wait prepay queue"},
	SlidingCounter: {"sliding-counter", engine.SlidingCounter, "counter:", maxLimit, "slices trigger"},
}

// row returns the row of the rule's algorithm, which is Calendar if there is a Cron, or an empty row if there is no such algorithm.
func (r *Rule) row() algorithm {
	switch {
	case r.Cron != "":
		return algorithms[Calendar]
	case int(r.Algorithm) < len(algorithms):
		return algorithms[r.Algorithm]
	}
	return algorithm{}
}

// takes reports whether an argument goes with the rule's algorithm.
func (r *Rule) takes(argument string) bool { return strings.Contains(r.row().takes, argument) }

// checkTakes returns what is wrong if a rule has an argument that does not go with its algorithm.
func (r *Rule) checkTakes(argument string, has bool) error {
	if !has || r.takes(argument) {
		return nil
	}
	var words []string
	for _, a := range algorithms {
		if strings.Contains(a.takes, argument) {
			words = append(words, a.word)
		}
	}
	return r.wrong(argument, "found %s; expected a %s", r.what(), alternatives(words))
}

// alternatives joins words: "a, b or c".
func alternatives(words []string) string {
	last := len(words) - 1
	if last == 0 {
		return words[0]
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// String returns the word that directives use.
func (a Algorithm) String() string {
	if int(a) < len(algorithms) {
		return algorithms[a].word
	}
	return fmt.Sprintf("Algorithm(%d)", a)
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
		return r.row().kind
	}
}
