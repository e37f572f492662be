package ratelimit

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

// String returns the word that directives use.
func (a Algorithm) String() string {
	return word("Algorithm", uint8(a),
		"sliding-window", "fixed-window", "calendar", "token-bucket", "leaky-bucket", "sliding-counter")
}
