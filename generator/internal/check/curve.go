package check

import (
	"math/big"

	"github.com/ratelimit-go/ratelimit/generator/internal/calendar"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// follows reports that loose admits each sequence of permits that strict does. It compares how many permits strict admits at
// most in a span of time with how many loose admits at least; where that is not known, it reports false.
func follows(loose, strict ratelimit.Rule) bool {
	if isDebtor(loose) || isDebtor(strict) {
		return false
	}
	switch {
	case loose.Cron != "" && strict.Cron != "":
		return strict.Limit <= loose.Limit && calendar.Within(loose, strict)
	case loose.Cron != "":
		longest, ok := calendar.Longest(loose)
		return ok && most(strict, longest.Microseconds()-1).Cmp(big.NewInt(loose.Limit)) <= 0
	case strict.Cron != "":
		shortest, ok := calendar.Shortest(strict)
		if !ok {
			return false
		}
		strict.Algorithm, strict.Per = ratelimit.FixedWindow, shortest // which admits as much, at the worst times
	}
	if isBucket(loose) {
		// Between bursts, both go on at their rates: strict's L permits in P against loose's.
		return peak(strict) <= capacity(loose, loose.Limit) &&
			product(strict.Limit, loose.Per.Microseconds()).Cmp(product(loose.Limit, strict.Per.Microseconds())) <= 0
	}
	return most(strict, span(loose)-1).Cmp(big.NewInt(loose.Limit)) <= 0
}

// isDebtor reports whether a rule admits more than it has, so that only its average is known.
func isDebtor(r ratelimit.Rule) bool { return r.Prepay || r.Warmup > 0 }

func isBucket(r ratelimit.Rule) bool {
	return r.Algorithm == ratelimit.TokenBucket || r.Algorithm == ratelimit.LeakyBucket
}

// span is for how many microseconds a permit may count in a window of r.
func span(r ratelimit.Rule) int64 {
	per := r.Per.Microseconds()
	if r.Algorithm != ratelimit.SlidingCounter {
		return per
	}
	slices := r.SliceCount()
	return (slices + 1) * ((per + slices - 1) / slices) // a slice leaves as a whole
}

// most is how many permits r admits at most between two calls that are d microseconds apart, both included.
func most(r ratelimit.Rule, d int64) *big.Int {
	per := r.Per.Microseconds()
	switch {
	case isBucket(r):
		gained := product(d, r.Limit)
		gained.Div(gained, big.NewInt(per))
		return gained.Add(gained, big.NewInt(capacity(r, r.Limit)))
	case r.Algorithm == ratelimit.FixedWindow: // the end of one, and those that begin after it
		return product(1+(d+per-1)/per, r.Limit)
	}
	return product(1+d/per, r.Limit)
}

// peak is how many permits r admits at most in a moment, or around one.
func peak(r ratelimit.Rule) int64 {
	switch {
	case isBucket(r):
		return capacity(r, r.Limit)
	case r.Algorithm == ratelimit.FixedWindow:
		return 2 * r.Limit
	}
	return r.Limit
}

func product(x, y int64) *big.Int { return new(big.Int).Mul(big.NewInt(x), big.NewInt(y)) }
