package ratelimit

import "fmt"

// Mode is what happens when a rule refuses a call. The numbers never change, because stores keep them.
type Mode uint8

const (
	ModeEnforce Mode = iota // the call is refused
	ModeShadow              // the refusal is only reported: see [WithObserver]. Errors, such as a KeyError, fail the call as in ModeEnforce
	ModeTrigger             // the rule never refuses: the function of [WithTrigger] is called when its limit is reached
)

// String returns the directives' word: "enforce", "shadow" or "trigger".
func (m Mode) String() string {
	return word("Mode", uint8(m), "enforce", "shadow", "trigger")
}

// Scope is who shares the counts of a rule.
type Scope uint8

const (
	ScopeFleet    Scope = iota // all limiters of one prefix on the store share them
	ScopeInstance              // each limiter has its own
)

// String returns the directives' word: "fleet" or "instance".
func (s Scope) String() string { return word("Scope", uint8(s), "fleet", "instance") }

// Refund is when the permits of a call are given back.
type Refund uint8

const (
	RefundNever Refund = iota // they stay taken
	RefundError               // if the wrapped call returns an error, or panics
)

// String returns the directives' word: "never" or "error".
func (r Refund) String() string { return word("Refund", uint8(r), "never", "error") }

// find returns the first value from 0 to last that has this word.
func find[T ~uint8](last T, word string, of func(T) string) (value T, ok bool) {
	for v := range last + 1 {
		if of(v) == word {
			return v, true
		}
	}
	return 0, false
}

// word returns words[value], or a text with the name of the type if there is no such word.
func word(name string, value uint8, words ...string) string {
	if int(value) < len(words) {
		return words[value]
	}
	return fmt.Sprintf("%s(%d)", name, value)
}
