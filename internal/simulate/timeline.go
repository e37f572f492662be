package simulate

import (
	"slices"
	"time"
)

// Timeline is what became of the calls over time.
type Timeline struct {
	Step     time.Duration // what an element of Admitted and Refused stands for; the last may be cut short
	Admitted []int64       // calls that came then and were admitted, at once or later
	Waited   []int64       // those of Admitted that waited
	Refused  []int64       // calls that came then

	Key      string        // whose budget is in Left: that of the key with the most calls
	LeftStep time.Duration // between two elements of Left; the first is at the start
	Left     [][]int64     // by rule: the permits that a call could take
}

const (
	mostSteps      = 120 // of a timeline
	samplesPerStep = 5   // of the budget left
)

// steps are the lengths that a step may have: those that a reader can count with.
var steps = func() []time.Duration {
	var all []time.Duration
	for unit := time.Microsecond; unit < time.Second; unit *= 10 {
		all = append(all, unit, 2*unit, 5*unit)
	}
	for _, unit := range []time.Duration{time.Second, time.Minute} {
		all = append(all, unit, 2*unit, 5*unit, 10*unit, 15*unit, 30*unit)
	}
	const day = 24 * time.Hour
	return append(all, time.Hour, 2*time.Hour, 3*time.Hour, 6*time.Hour, 12*time.Hour, day, 2*day, 7*day, 30*day, 90*day, 365*day)
}()

// stepFor returns the shortest step of which at most n make up a time.
func stepFor(length time.Duration, n int) time.Duration {
	i := slices.IndexFunc(steps, func(step time.Duration) bool { return length <= step*time.Duration(n) })
	if i < 0 {
		return steps[len(steps)-1]
	}
	return steps[i]
}

// timeline is one in the making.
type timeline struct {
	Timeline
	busiest int           // the key of Left
	next    time.Duration // when Left is due
}

func newTimeline(l *Load, rules int) *timeline {
	step := stepFor(l.Length, mostSteps)
	n := (l.Length + step - 1) / step
	t := &timeline{busiest: l.busiest()}
	t.Timeline = Timeline{
		Step: step, Admitted: make([]int64, n), Waited: make([]int64, n), Refused: make([]int64, n),
		LeftStep: step / samplesPerStep, Left: make([][]int64, rules),
	}
	if len(l.Keys) > 0 {
		t.Key = l.Keys[t.busiest]
	}
	t.LeftStep = max(t.LeftStep, time.Microsecond)
	return t
}

// busiest returns the key with the most calls, the first one of several.
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

// outcome is what becomes of a call.
type outcome uint8

const (
	admitted outcome = iota // at once
	waited                  // admitted, later
	refused
)

func (t *timeline) count(after time.Duration, what outcome) {
	i := min(int(after/t.Step), len(t.Admitted)-1) // a call that is rounded up may come at the very end
	switch what {
	case refused:
		t.Refused[i]++
		return
	case waited:
		t.Waited[i]++
	}
	t.Admitted[i]++
}

// sampleUntil measures what is left at each time that is due by then. Calls of that time come later.
func (t *timeline) sampleUntil(end time.Duration, left func(at time.Duration) ([]int64, error)) error {
	for ; t.next <= end; t.next += t.LeftStep {
		now, err := left(t.next)
		if err != nil {
			return err
		}
		for rule, permits := range now {
			t.Left[rule] = append(t.Left[rule], permits)
		}
	}
	return nil
}
