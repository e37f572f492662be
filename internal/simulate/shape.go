package simulate

import (
	"math"
	"math/rand/v2"
	"time"
)

// shapes are the loads that need no file. Each calls arrive with the time of each call since the start of the load, in order.
var shapes = map[string]func(r rate, l *Load, random *rand.Rand, arrive func(after time.Duration)){
	"constant": constant,
	"poisson":  poisson,
	"burst":    burst,
	"daily":    daily,
}

// constant spaces the calls evenly.
func constant(r rate, l *Load, _ *rand.Rand, arrive func(time.Duration)) {
	gap := float64(r.per) / float64(r.n)
	for i := 0; time.Duration(float64(i)*gap) < l.Length; i++ {
		arrive(time.Duration(float64(i) * gap))
	}
}

// poisson makes the calls of many independent callers: the gaps between them are exponentially distributed.
func poisson(r rate, l *Load, random *rand.Rand, arrive func(time.Duration)) {
	mean := float64(r.per) / float64(r.n)
	for at := random.ExpFloat64() * mean; at < float64(l.Length); at += random.ExpFloat64() * mean {
		arrive(time.Duration(at))
	}
}

// burst makes n calls at once, at the start and then once in each period.
func burst(r rate, l *Load, _ *rand.Rand, arrive func(time.Duration)) {
	for at := time.Duration(0); at < l.Length; at += r.per {
		for range r.n {
			arrive(at)
		}
	}
}

const (
	busiest = 15 * time.Hour // the time of day with the most calls
	swing   = 0.8            // by how much of the mean rate the rate rises and falls
)

// daily is poisson with a rate that follows the time of day. It thins out a load of the highest rate, after Lewis and Shedler,
// "Simulation of nonhomogeneous Poisson processes by thinning", 1979.
func daily(r rate, l *Load, random *rand.Rand, arrive func(time.Duration)) {
	midnight := time.Date(l.Start.Year(), l.Start.Month(), l.Start.Day(), 0, 0, 0, 0, l.Start.Location())
	offset := l.Start.Sub(midnight) - busiest
	mean := float64(r.per) / float64(r.n) / (1 + swing)
	for at := random.ExpFloat64() * mean; at < float64(l.Length); at += random.ExpFloat64() * mean {
		days := (at + float64(offset)) / float64(24*time.Hour)
		if random.Float64()*(1+swing) < 1+swing*math.Cos(2*math.Pi*days) {
			arrive(time.Duration(at))
		}
	}
}
