package simulate

import (
	"slices"
	"time"
)

// Timeline has the results of a load over time.
type Timeline struct {
	Step     Duration `json:"step"`            // the length of a step; the last step may be shorter
	Admitted series   `json:"admitted"`        // calls that arrived in a step and were admitted, at once or later
	Waited   series   `json:"waited,omitzero"` // the calls of Admitted that waited
	Refused  series   `json:"refused"`         // calls that arrived in a step and were refused

	Key      string    `json:"key"`      // the key whose budget is in Left, which is the key with the most calls
	LeftStep Duration  `json:"leftStep"` // the time between two elements of Left; the first is at the start
	Left     [][]int64 `json:"left"`     // for each rule, the permits that a call could take
}

// series has a number of calls for each step.
type series []int64

func (s series) sum() (calls int64) {
	for _, n := range s {
		calls += n
	}
	return calls
}

// IsZero reports whether there are no calls, so that JSON can leave them out.
func (s series) IsZero() bool { return s.sum() == 0 }

const (
	mostSteps      = 120 // the largest number of steps in a timeline
	samplesPerStep = 5   // the number of elements of Left in a step
)

// steps are the possible lengths of a step, which are easy to read on an axis.
var steps = func() []time.Duration {
	var all []time.Duration
	for unit := time.Microsecond; unit < time.Second; unit *= 10 {
		all = append(all, unit, 2*unit, 5*unit)
	}
	for _, unit := range []time.Duration{time.Second, time.Minute} {
		all = append(all, unit, 2*unit, 5*unit, 10*unit, 15*unit, 30*unit)
	}
	const day = 24 * time.Hour
	return append(all, time.Hour, 2*time.Hour, 3*time.Hour, 6*time.Hour, 12*time.Hour, day, 2*day, 7*day, 30*day, 90*day, 365*day, 2*365*day)
}()

// stepFor returns the shortest step that divides a length into at most n steps. The number n must be at least 10.
func stepFor(length time.Duration, n int) time.Duration {
	return steps[slices.IndexFunc(steps, func(step time.Duration) bool { return length <= step*time.Duration(n) })]
}

// newTimeline returns the timeline of a load before its first call. Left is for the key with this index.
func newTimeline(l *Load, rules, key int) Timeline {
	step := stepFor(l.Length, mostSteps)
	n := (l.Length + step - 1) / step
	return Timeline{
		Step: Duration(step), Admitted: make(series, n), Waited: make(series, n), Refused: make(series, n),
		Key: l.Keys[key], LeftStep: Duration(max(step/samplesPerStep, time.Microsecond)), Left: make([][]int64, rules),
	}
}

// busiest returns the index of the key with the most calls, or the first of several.
func (l *Load) busiest() int {
	calls := make([]int, len(l.Keys))
	most := 0
	for _, c := range l.Calls {
		calls[c.Key]++
	}
	for key := range calls {
		if calls[key] > calls[most] {
			most = key
		}
	}
	return most
}

// at returns the step of a call. A call whose time was rounded up to the end of the load belongs to the last step.
func (t *Timeline) at(call Call) int {
	return min(int(call.After/time.Duration(t.Step)), len(t.Admitted)-1)
}
