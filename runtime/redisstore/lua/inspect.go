package lua

import (
	"encoding/binary"
	"math"
)

// Due is permits for a time to come, in microseconds.
type Due struct{ At, Permits int64 }

// DueOfPermits returns what calls that wait have of a sliding window, from its newest permits.
func DueOfPermits(permits []string, now int64) (due []Due) {
	for _, p := range permits {
		if n := numbers(p, 1); n != nil && n[0] > now {
			due = append(due, Due{n[0], 1})
		}
	}
	return due
}

// DueOfWindows returns what calls that wait have of fixed or calendar windows.
func DueOfWindows(state string, now int64) (due []Due) {
	for state = current(state, 24); len(state) >= 24; state = state[24:] {
		if n := numbers(state, 3); n != nil && n[0] > now && n[2] > 0 {
			due = append(due, Due{n[0], n[2]})
		}
	}
	return due
}

// maxDue is how many permits of a bucket are told at most.
const maxDue = 10_000

// DueOfBucket returns what calls that wait have of a bucket. The period is in microseconds; a burst of 0 is the limit.
func DueOfBucket(state string, period, burst, now int64) (due []Due) {
	n := numbers(current(state, 32), 4)
	if n == nil || n[3] == 0 {
		return nil
	}
	if burst == 0 {
		burst = n[3]
	}
	each := float64(period) / float64(n[3])
	last := float64(n[1]-now) + float64(n[2])/float64(n[3]) - float64(burst)*each // from now
	permits := min(math.Ceil(last/each), maxDue)
	for i := permits - 1; i >= 0; i-- {
		due = append(due, Due{now + int64(math.Ceil(last-i*each)), 1})
	}
	return due
}

// FreePlaces returns the free places of a state.
func FreePlaces(state string, now int64) (free []Due) {
	for state = current(state, 16); len(state) >= 16; state = state[16:] {
		if n := numbers(state, 2); n != nil && n[0] > now {
			free = append(free, Due{n[0], n[1]})
		}
	}
	return free
}

// layout is what common.lua calls LAYOUT.
const layout = 1

// current returns the groups of so many bytes in a state, as the function of this name in common.lua does; or nothing if it is damaged,
// or of a later layout.
func current(state string, group int) string {
	switch {
	case len(state)%group == 1 && state[0] == layout:
		return state[1:]
	case len(state)%group == 0:
		return state
	}
	return ""
}

// numbers reads the first n numbers of a state. Numbers that no script leaves there give nil.
func numbers(state string, n int) []int64 {
	if len(state) < 8*n {
		return nil
	}
	found := make([]int64, n)
	for i := range found {
		f := math.Float64frombits(binary.LittleEndian.Uint64([]byte(state[8*i:])))
		if !(f >= 0 && f < 1<<53) {
			return nil
		}
		found[i] = int64(f)
	}
	return found
}
