package ratelimit

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// Algorithm is how a rule counts. The numbers never change, because stores keep them.
type Algorithm uint8

const (
	// SlidingWindow admits Limit permits in any span of Per, exactly. It keeps the time of each permit.
	SlidingWindow Algorithm = iota
	// FixedWindow admits Limit permits in a window. The first admitted call opens the window, which lasts for Per. Around the end of
	// a window up to twice the limit may pass within a moment.
	FixedWindow
	// Calendar admits Limit permits between two fire times of Cron, or in a window of Every. It is the default of a rule with one of them.
	Calendar
	// TokenBucket holds up to Burst permits and gains Limit of them in each Per, evenly spread.
	TokenBucket
	// LeakyBucket lets permits leave evenly spaced, Limit of them in each Per.
	LeakyBucket
	// SlidingCounter is a SlidingWindow that counts by slices of Per. It is less exact, but never admits more than Limit, and its state
	// has a constant size.
	SlidingCounter
	// Concurrency bounds the calls that run at the same time: together they hold at most Limit permits. A generated wrapper gives the permits
	// back when the method returns. By hand, [Decision.Release] does. Per is how long permits outlive a process that died. The permits of running
	// methods are renewed. Those that were taken by hand end after Per.
	Concurrency
)

// numAlgorithms is the number of algorithms. They are in the order of the engine's kinds.
var numAlgorithms = Algorithm(len(engine.Algorithms()))

// Algorithms returns all algorithms, in the order of their numbers.
func Algorithms() []Algorithm {
	all := make([]Algorithm, numAlgorithms)
	for i := range all {
		all[i] = Algorithm(i)
	}
	return all
}

// wordsOf is what people are told about a rule of each algorithm: what errors call it; a clause for errors that says why it does not take what
// most others take, or ""; and what is said instead of "per minute", or "" if permits come back after a window.
var wordsOf = map[engine.Kind]struct{ noun, which, window string }{
	engine.SlidingWindow:  {noun: "sliding-window"},
	engine.FixedWindow:    {noun: "fixed-window"},
	engine.Calendar:       {noun: "calendar window", which: "which ends at a time of its own"},
	engine.TokenBucket:    {noun: "token-bucket"},
	engine.LeakyBucket:    {noun: "leaky-bucket"},
	engine.SlidingCounter: {noun: "sliding-counter"},
	engine.Concurrency:    {noun: "concurrency rule", which: "whose permits come back when calls end", window: "at the same time"},
}

// kind returns the engine's number of the algorithm, or 0 if there is no such algorithm.
func (a Algorithm) kind() engine.Kind {
	if a >= numAlgorithms {
		return 0
	}
	return engine.Kind(a) + engine.SlidingWindow
}

// String returns the word that directives use.
func (a Algorithm) String() string {
	if kind := a.kind(); kind != 0 {
		return kind.String()
	}
	return fmt.Sprintf("Algorithm(%d)", a)
}

// algorithm returns the kind of the rule's algorithm: Calendar if there is a Cron or an Every. It ignores Distinct, Prepay and Warmup.
func (r *Rule) algorithm() engine.Kind {
	if r.Cron != "" || r.Every != "" {
		return engine.Calendar
	}
	return r.Algorithm.kind()
}

// kind returns how the rule counts, with Distinct, Prepay and Warmup.
func (r *Rule) kind() engine.Kind {
	switch {
	case r.Distinct != "" && r.Every != "":
		return engine.DistinctAnchored
	case r.Distinct != "" && r.Cron != "":
		return engine.DistinctCalendar
	case r.Every != "":
		return engine.Anchored
	case r.Distinct != "":
		return engine.Distinct
	case r.Warmup > 0:
		return engine.Warmup
	case r.Prepay:
		return engine.Prepaid
	default:
		return r.counting()
	}
}

// counting returns the rule's algorithm, or Amounts for a sliding window that counts amounts. An override leaves how the limit of a program counts.
func (r *Rule) counting() engine.Kind {
	switch kind := r.algorithm(); {
	case r.Distinct != "" || r.raised:
		return kind
	case kind == engine.SlidingWindow && r.Amounts:
		return engine.Amounts
	default:
		return kind.At(r.Limit)
	}
}

// Releases reports whether a call releases the rule's permits when it ends, as under [Concurrency]: see [Decision.Release].
func (r Rule) Releases() bool { return r.algorithm().Row().Releases }

// length returns how long the rule's window is.
func (r *Rule) length() time.Duration { return cmp.Or(r.Per, r.algorithm().Row().Per) }

// accepts reports whether the rule's algorithm accepts an argument.
func (r *Rule) accepts(argument string) bool { return r.algorithm().Accepts(argument) }

// checkAccepts returns an error if the rule has an argument that its algorithm does not accept.
func (r *Rule) checkAccepts(argument string, has bool) error {
	if !has || r.accepts(argument) {
		return nil
	}
	var words []string
	all := engine.Algorithms()
	for _, kind := range all {
		if kind.Accepts(argument) {
			words = append(words, wordsOf[kind].noun)
		}
	}
	if which := wordsOf[r.algorithm()].which; which != "" && 2*len(words) > len(all) {
		return r.wrong(argument, "does not go with %s, %s", r.what(), which)
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
