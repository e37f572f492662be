package faults

import (
	"math"
	"slices"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Law is the definition of an algorithm as bounds on what a span of time may hold, both ends included. Times are microseconds.
type Law struct {
	// Most returns how many permits a span may hold at most.
	Most func(from, to int64) int64
	// Least returns how many permits a span has to hold, with those of a call at its end, for that call to be refused. It is Most
	// where the algorithm is exact.
	Least func(from, to int64) int64
	// Prepaid says that a call pays for the calls before it, and nothing for itself.
	Prepaid bool
	// Per is set for calls that run: the permits of a call count from when it is admitted until they are given back, or for Per if that is not
	// known.
	Per int64
	// Span bounds the spans that have to be looked at; 0 is any length.
	Span int64
}

const anyNumber = math.MaxInt64 / 4

// LawOf returns the law of a rule. The entries tell where fixed windows lie: a refusal tells when its window ends. A lease bounds what a
// span may hold as the rule does without; but no span has to hold anything for a refusal, since others may have taken the permits ahead.
func LawOf(rule ratelimit.Rule, entries []Entry) Law {
	per := rule.Per.Microseconds()
	switch {
	case rule.Lease > 0:
		rule.Lease = 0
		law := LawOf(rule, entries)
		law.Least = func(from, to int64) int64 { return 0 }
		return law
	case rule.Cron != "":
		return calendarLaw(rule)
	case rule.Warmup > 0:
		rule.Burst = 0
		law := bucketLaw(rule, per, 3*per)
		law.Prepaid = true
		return law
	case rule.Algorithm == ratelimit.LeakyBucket:
		rule.Burst = 1
		return bucketLaw(rule, per, per)
	case rule.Algorithm == ratelimit.TokenBucket:
		if rule.Burst == 0 {
			rule.Burst = rule.Limit
		}
		return bucketLaw(rule, per, per)
	case rule.Algorithm == ratelimit.FixedWindow:
		return fixedLaw(rule, entries)
	case rule.Algorithm == ratelimit.SlidingCounter:
		return Law{Most: within(rule.Limit, per), Least: within(rule.Limit, per+2*per/max(1, rule.Slices)), Span: 3 * per}
	case rule.Algorithm == ratelimit.Concurrency:
		most := within(rule.Limit, 1)
		return Law{Most: most, Least: most, Span: 1, Per: per}
	case rule.Algorithm == ratelimit.SlidingWindow:
		most := within(rule.Limit, per)
		return Law{Most: most, Least: most, Span: per}
	}
	panic("LawOf has no law for " + rule.Algorithm.String())
}

// inForce is a law and when it was in force.
type inForce struct {
	Law
	from, to int64
}

// joined returns the law of a limit that changed. A span may hold what the most generous law allows that was in force in it, and a refusal
// needs what the strictest law does.
func joined(laws []inForce) Law {
	law := laws[0].Law
	law.Most = func(from, to int64) (most int64) {
		for _, l := range laws {
			if l.from <= to && from <= l.to {
				most = max(most, l.Most(from, to))
			}
		}
		return most
	}
	law.Least = func(from, to int64) int64 {
		least := int64(anyNumber)
		for _, l := range laws {
			if l.from <= to && from <= l.to {
				least = min(least, l.Least(from, to))
			}
		}
		return least
	}
	return law
}

// within allows n permits in any span shorter than a time.
func within(n, per int64) func(from, to int64) int64 {
	return func(from, to int64) int64 {
		if to-from < per {
			return n
		}
		return anyNumber
	}
}

// bucketLaw allows the burst and what the bucket gains in a span, if it gains the limit in per at most, and in slow at least. Calls are admitted
// at whole microseconds, so a span of places may be one microsecond shorter than what the bucket gains takes.
func bucketLaw(rule ratelimit.Rule, per, slow int64) Law {
	gains := func(per, more int64) func(from, to int64) int64 {
		return func(from, to int64) int64 { return rule.Burst + (to-from+more)*rule.Limit/per }
	}
	return Law{Most: gains(per, 1), Least: gains(slow, 0), Prepaid: rule.Prepay}
}

// fixedLaw allows the limit in a window. Where no refusal tells a window, a span shorter than one may lie in one, or
// in two, with what was charged beyond the limit afterwards. The store without
// scripts may prolong a window to a whole millisecond.
func fixedLaw(rule ratelimit.Rule, entries []Entry) Law {
	per := rule.Per.Microseconds()
	var ends []int64
	for _, e := range entries {
		if e.Outcome == Refused {
			ends = append(ends, e.At+e.RetryAfter)
		}
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	within := func(longer, unknown int64) func(from, to int64) int64 {
		return func(from, to int64) int64 {
			i, found := slices.BinarySearch(ends, to)
			if found {
				i++
			}
			switch {
			case i < len(ends) && ends[i]-per-longer <= from && (i == 0 || ends[i-1] <= from):
				return rule.Limit
			case to-from < per:
				return unknown
			}
			return anyNumber
		}
	}
	return Law{Most: within(0, 4*rule.Limit), Least: within(1000, rule.Limit), Span: per + 1000}
}

// calendarLaw allows the limit between two fire times. It knows one kind of cron expression: every minute, or so many seconds.
func calendarLaw(rule ratelimit.Rule) Law {
	every := map[string]time.Duration{"* * * * * *": time.Second, "*/2 * * * * *": 2 * time.Second, "* * * * *": time.Minute}[rule.Cron].Microseconds()
	most := func(from, to int64) int64 {
		if from/every == to/every {
			return rule.Limit
		}
		return anyNumber
	}
	return Law{Most: most, Least: most, Span: every}
}
