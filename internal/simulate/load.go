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

// Load is the calls that rules are asked about.
type Load struct {
	Text   string // how the user asked for it
	Start  time.Time
	Length time.Duration
	Keys   []string
	Calls  []Call // sorted by time

	Members []string // what rules with distinct= count; none if the load does not say
}

// Call is one call of a load.
type Call struct {
	After time.Duration // since the start of the load, in whole microseconds
	Key   int           // its index in Load.Keys
	Cost  int64         // permits; 0 if the load does not say

	Member int // its index in Load.Members
}

// Span says which part of time a load covers, and whose calls it has. The zero values stand for the defaults.
type Span struct {
	Start  time.Time     // midnight at the start of 2026, or the first call of a file
	Length time.Duration // 10 minutes, a day for a daily load, or up to the last call of a file
	Keys   int           // 1; no meaning for a file
	Seed   uint64        // of what is random
}

const (
	maxCalls  = 10_000_000
	maxKeys   = 1_000_000
	maxLength = 3660 * 24 * time.Hour
)

// WantLoad says what the text of a load looks like.
const WantLoad = "constant:100/s, poisson:100/s, burst:50/10s, daily:100/s, a sum of these with +, or csv:file"

// NewLoad returns the load that a text asks for, such as constant:100/s or poisson:1/s+burst:50/10s. The same text, span and seed
// always give the same load. [OpenCSV] reads those of csv:file.
func NewLoad(text string, span Span) (*Load, error) {
	l := &Load{Text: text, Start: span.Start, Length: span.Length, Keys: keys(max(1, span.Keys))}
	if l.Start.IsZero() {
		l.Start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)
	}
	if l.Length == 0 {
		l.Length = usualLength(text)
	}
	for i, part := range strings.Split(text, "+") {
		if err := l.add(part, span.Seed, uint64(i)); err != nil {
			return nil, err
		}
	}
	l.sort()
	return l, nil
}

// add adds the calls of the part of the load that has this number.
func (l *Load) add(text string, seed, part uint64) error {
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
	when, whose := rand.New(rand.NewPCG(seed, 2*part)), rand.New(rand.NewPCG(seed, 2*part+1)) // keys do not move calls
	arrivals(r, l, when, func(after time.Duration) {
		l.Calls = append(l.Calls, Call{After: after.Round(time.Microsecond), Key: whose.IntN(len(l.Keys))})
	})
	return nil
}

func usualLength(text string) time.Duration {
	if strings.Contains(text, "daily:") {
		return 24 * time.Hour
	}
	return 10 * time.Minute
}

// check bounds what a simulation takes.
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

// keys names n keys; more than are allowed need no names.
func keys(n int) []string {
	named := make([]string, min(n, maxKeys+1))
	for i := range named {
		named[i] = "key-" + strconv.Itoa(i+1)
	}
	return named
}

// rate is a number of calls in a time.
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
	if per[0] > '9' { // a unit
		per = "1" + per
	}
	d, _, err := period.Parse("time", per)
	if err != nil {
		return rate{}, fmt.Errorf("%w; %s", err, wantRate)
	}
	return rate{n, d}, nil
}

// calls is how many calls a load has, on average where it is random.
func (r rate) calls(kind string, length time.Duration) float64 {
	periods := float64(length) / float64(r.per)
	if kind == "burst" {
		periods = math.Ceil(periods)
	}
	return float64(r.n) * periods
}

// sort sorts the calls by time. Calls of one time keep their order.
func (l *Load) sort() {
	slices.SortStableFunc(l.Calls, func(a, b Call) int { return cmp.Compare(a.After, b.After) })
}
