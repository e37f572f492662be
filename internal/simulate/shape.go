package simulate

import (
	"math"
	"math/rand/v2"
	"time"
)

// shape generates the calls of a load. It calls arrive with the time of each call since the start of the load, in order.
type shape func(r rate, l *Load, random *rand.Rand, arrive func(after time.Duration))

var shapes = map[string]shape{"constant": constant, "poisson": scattered(0), "burst": burst, "daily": scattered(0.8)}

// constant generates evenly spaced calls.
func constant(r rate, l *Load, _ *rand.Rand, arrive func(time.Duration)) {
	gap := float64(r.per) / float64(r.n)
	for i := 0; time.Duration(float64(i)*gap) < l.Length; i++ {
		arrive(time.Duration(float64(i) * gap))
	}
}

// burst generates n calls at once, at the start and then once in each period.
func burst(r rate, l *Load, _ *rand.Rand, arrive func(time.Duration)) {
	for at := time.Duration(0); at < l.Length; at += r.per {
		for range r.n {
			arrive(at)
		}
	}
}

const busiest = 15 * time.Hour // the time of day with the most calls

// scattered generates the calls of many independent callers, with exponentially distributed gaps. The rate follows the time of day:
// it rises and falls by swing, a fraction of its mean. The generator draws calls at the highest rate and drops some of them, after Lewis
// and Shedler, "Simulation of nonhomogeneous Poisson processes by thinning", 1979.
func scattered(swing float64) shape {
	return func(r rate, l *Load, random *rand.Rand, arrive func(time.Duration)) {
		midnight := time.Date(l.Start.Year(), l.Start.Month(), l.Start.Day(), 0, 0, 0, 0, l.Start.Location())
		offset := l.Start.Sub(midnight) - busiest
		mean := float64(r.per) / float64(r.n) / (1 + swing)
		for at := random.ExpFloat64() * mean; at < float64(l.Length); at += random.ExpFloat64() * mean {
			days := (at + float64(offset)) / float64(24*time.Hour)
			if swing == 0 || random.Float64()*(1+swing) < 1+swing*math.Cos(2*math.Pi*days) {
				arrive(time.Duration(at))
			}
		}
	}
}
