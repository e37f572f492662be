package simulate

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/period"
)

// Load is a sequence of calls to simulate.
type Load struct {
	Text   string // the load as the user wrote it
	Start  time.Time
	Length time.Duration
	Keys   []string
	Calls  []Call // sorted by time

	Runs    time.Duration // how long each call runs, for rules that count calls that run; 0 means a second
	Members []string      // the members that rules with distinct= count; none if the load has no members

	without map[string]int // the first line of a csv that lacks a value, by the name of the value
}

// Call is one call of a load.
type Call struct {
	After time.Duration // since the start of the load, in whole microseconds
	Key   int           // the index in Load.Keys
	Cost  int64         // permits; noCost if the call has none

	Member int       // the index in Load.Members
	Anchor time.Time // when the windows of rules with every= begin; zero stands for the first call of the key
}

// noCost is the cost of a call that costs what its rules say. A call of cost 0 takes nothing.
const noCost = -1

// Span says how long a load lasts and how many keys it has. Zero values stand for the defaults.
type Span struct {
	Start  time.Time     // default: midnight at the start of 2026, or the first call of a file
	Length time.Duration // default: 10 minutes, a day for a daily load, or up to the last call of a file
	Keys   int           // default: 1; ignored for a file
	Seed   uint64        // the seed of random numbers
	Runs   time.Duration // see Load
}

const (
	maxCalls  = 10_000_000
	maxKeys   = 1_000_000
	maxLength = 3660 * 24 * time.Hour
)

// WantLoad describes the text of a load, for error messages.
const WantLoad = "constant:100/s, poisson:100/s, burst:50/10s, daily:100/s, a sum of these with +, or csv:file"

// NewLoad returns the load for a text such as constant:100/s or poisson:1/s+burst:50/10s. The same text and span always give the same
// load. [OpenCSV] returns the load for csv:file.
func NewLoad(text string, span Span) (*Load, error) {
	l := &Load{Text: text, Start: span.Start, Length: span.Length, Runs: span.Runs, Keys: keys(max(1, span.Keys))}
	if l.Start.IsZero() {
		l.Start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	if l.Length == 0 {
		l.Length = usualLength(text)
	}
	for i, part := range strings.Split(text, "+") {
		if err := l.addPart(part, span.Seed, uint64(i)); err != nil {
			return nil, err
		}
	}
	l.sort()
	return l, nil
}

// addPart adds the calls of one part of the load. The number of the part is part of its seed.
func (l *Load) addPart(text string, seed, part uint64) error {
	kind, argument, _ := strings.Cut(text, ":")
	arrivals, known := shapes[kind]
	if !known {
		return fmt.Errorf("load is %q; expected %s", text, WantLoad)
	}
	r, err := parseRate(argument)
	if err != nil {
		return fmt.Errorf("load is %q: %w", text, err)
	}
	if err := l.check(float64(len(l.Calls)) + r.calls(kind, l.Length)); err != nil {
		return err
	}
	when, whose := rand.New(rand.NewPCG(seed, 2*part)), rand.New(rand.NewPCG(seed, 2*part+1)) // so that times do not depend on keys
	arrivals(r, l, when, func(after time.Duration) {
		l.Calls = append(l.Calls, Call{After: after.Round(time.Microsecond), Key: whose.IntN(len(l.Keys)), Cost: noCost})
	})
	return nil
}

func usualLength(text string) time.Duration {
	if strings.Contains(text, "daily:") {
		return 24 * time.Hour
	}
	return 10 * time.Minute
}

// check returns an error if the load is too large to simulate. The number of calls is an estimate.
func (l *Load) check(calls float64) error {
	switch {
	case calls > maxCalls:
		return fmt.Errorf("the load has %.0f calls; at most %d are possible", calls, maxCalls)
	case len(l.Keys) > maxKeys:
		return fmt.Errorf("the load has %d keys; at most %d are possible", len(l.Keys), maxKeys)
	case l.Length > maxLength:
		return fmt.Errorf("the load lasts %s; at most %s are possible", period.Format(l.Length), period.Format(maxLength))
	}
	return nil
}

// keys returns the names of n keys, or of maxKeys+1 if n is larger, which check refuses.
func keys(n int) []string {
	named := make([]string, min(n, maxKeys+1))
	for i := range named {
		named[i] = "key-" + strconv.Itoa(i+1)
	}
	return named
}

// rate is a number of calls in a period.
type rate struct {
	n   int64
	per time.Duration
}

const wantRate = "expected a rate such as 100/s, 5/m or 50/10s"

func parseRate(text string) (rate, error) {
	number, per, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 1 || per == "" {
		return rate{}, fmt.Errorf("the rate is %q; %s", text, wantRate)
	}
	if per[0] > '9' { // a unit without a number
		per = "1" + per
	}
	d, _, err := period.Parse("time", per)
	if err != nil {
		return rate{}, fmt.Errorf("%w; %s", err, wantRate)
	}
	return rate{n, d}, nil
}

// calls returns the number of calls in a load. For a random load it is the average.
func (r rate) calls(kind string, length time.Duration) float64 {
	periods := float64(length) / float64(r.per)
	if kind == "burst" {
		periods = math.Ceil(periods)
	}
	return float64(r.n) * periods
}

// sort sorts the calls by time. Calls of the same time keep their order.
func (l *Load) sort() {
	slices.SortStableFunc(l.Calls, func(a, b Call) int { return cmp.Compare(a.After, b.After) })
}
