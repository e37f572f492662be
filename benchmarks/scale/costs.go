package main

import (
	"errors"
	"math"
)

// costs are microseconds of processor time.
type costs struct {
	trip     float64 // of a server, for reading a connection once and replying
	script   float64 // of a server, for a script
	decision float64 // of a server, for a decision in a script
	equal    float64 // of a server, for one of several equal calls that a script decides together

	client, clientEqual, leased float64 // of a process, for a decision of each kind
}

// costsOf returns the costs that explain the measured loads. A single caller causes a trip, a script and a decision for each call. Many callers of
// one server share trips and scripts. In a cluster they share trips, and a script has the calls of one slot.
func costsOf(loads []load) (costs, error) {
	find := func(servers string, callers int, subjects string) (l load) {
		for _, l = range loads {
			if l.servers == servers && l.callers == callers && l.subjects == subjects {
				return l
			}
		}
		panic("no such load is measured")
	}
	alone, many, slots := find("one", 1, cold), find("one", 64, cold), find("cluster of 1", 64, cold)
	equal, fromLease := find("cluster of 1", 64, hot), find("cluster of 1", 64, leased)
	x, ok := solve([3][4]float64{
		{alone.reads, alone.scripts, 1, alone.server}, {many.reads, many.scripts, 1, many.server}, {slots.reads, slots.scripts, 1, slots.server},
	})
	if !ok {
		return costs{}, errors.New("the loads do not tell the costs apart")
	}
	c := costs{trip: x[0], script: x[1], decision: x[2], client: slots.client, clientEqual: equal.client, leased: fromLease.client}
	c.equal = max(0, equal.server-equal.reads*c.trip-equal.scripts*c.script)
	return c, nil
}

// server returns the cost of a decision of a load for a server.
func (c costs) server(l load) float64 {
	each := c.decision
	if l.subjects != cold {
		each = c.equal
	}
	if l.subjects == leased {
		each *= l.scripts
	}
	return l.reads*c.trip + l.scripts*c.script + each
}

// solve solves three linear equations by elimination with pivots.
func solve(m [3][4]float64) (x [3]float64, ok bool) {
	for i := range 3 {
		pivot := i
		for j := i + 1; j < 3; j++ {
			if math.Abs(m[j][i]) > math.Abs(m[pivot][i]) {
				pivot = j
			}
		}
		m[i], m[pivot] = m[pivot], m[i]
		if math.Abs(m[i][i]) < 1e-9 {
			return x, false
		}
		for j := range 3 {
			if j == i {
				continue
			}
			f := m[j][i] / m[i][i]
			for k := range 4 {
				m[j][k] -= f * m[i][k]
			}
		}
	}
	for i := range 3 {
		x[i] = m[i][3] / m[i][i]
	}
	return x, true
}
