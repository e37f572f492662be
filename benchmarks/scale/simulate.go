package main

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

const (
	cores       = 4                      // of a process
	callersEach = 64                     // of a process, each of which calls again at once
	network     = 100 * time.Microsecond // from a process to a server
	flying      = 2                      // runs of a process on the way to a node, as in package redisstore
	mostCalls   = 256                    // of a run
	slots       = 16384
	grant       = 10_000  // permits that a lease has at most
	lasts       = 200_000 // microseconds of a lease
	virtual     = 60_000  // microseconds that are simulated; the first third is not counted
)

// state is what a simulation came to.
type state struct {
	processes     int
	rate          float64 // decisions a second
	node, process float64 // how busy the busiest is, 0 to 1
}

// saturate adds processes until a tenth more of them brings little, and returns what was reached.
func saturate(c costs, subjects string, nodes int) state {
	best := simulate(c, subjects, nodes, 1)
	for n := 2; n <= 8*nodes+8; n = max(n+1, n*5/4) {
		s := simulate(c, subjects, nodes, n)
		if s.rate < best.rate*1.02 && best.node > 0.9 {
			break
		}
		best = s
	}
	return best
}

func (s state) saturated() string {
	switch {
	case s.node > 0.9:
		return "server CPU"
	case s.process > 0.9:
		return "client CPU: more processes make more"
	default:
		return "the wait for the network: more callers make more"
	}
}

// event is that something is due at a time.
type event struct {
	at float64
	do func()
}

type events []event

func (e events) Len() int           { return len(e) }
func (e events) Less(i, j int) bool { return e[i].at < e[j].at }
func (e events) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)        { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// worker serves one thing after the other.
type worker struct{ free, busy float64 }

// serve returns when something is done that comes at a time and takes so long.
func (w *worker) serve(at, took float64) float64 {
	w.free = max(w.free, at) + took
	w.busy += took
	return w.free
}

// way is the way of a process to a node.
type way struct {
	flying  int
	waiting []int // the slots of the calls that wait for a run
}

// lease is permits that a process has taken ahead.
type lease struct {
	left int
	end  float64
}

// simulate lets processes call in virtual time. A process takes some time for each decision. A node decides run after run.
func simulate(c costs, subjects string, nodes, processes int) state {
	random := rand.New(rand.NewPCG(1, uint64(nodes*1000+processes)))
	var queue events
	now, decided := 0.0, 0
	after := func(at float64, do func()) { heap.Push(&queue, event{at, do}) }
	servers, programs := make([]worker, nodes), make([]worker, processes)
	leases := make([]lease, processes)
	ways := make([]way, nodes*processes)
	clientCost := map[string]float64{cold: c.client, hot: c.clientEqual, leased: c.leased}[subjects] / cores

	var call func(process int)
	var send func(process, node int)
	done := func(process int) {
		if now > virtual/3 {
			decided++
		}
		call(process)
	}
	call = func(process int) {
		after(programs[process].serve(now, clientCost), func() {
			if l := &leases[process]; l.left > 0 && now < l.end {
				l.left--
				done(process)
				return
			}
			slot := 0
			if subjects == cold {
				slot = random.IntN(slots)
			}
			node := slot * nodes / slots
			w := &ways[process*nodes+node]
			w.waiting = append(w.waiting, slot)
			send(process, node)
		})
	}
	send = func(process, node int) {
		w := &ways[process*nodes+node]
		if w.flying == flying || len(w.waiting) == 0 {
			return
		}
		n := min(len(w.waiting), mostCalls)
		took := c.trip + c.work(w.waiting[:n], subjects)
		w.waiting = append([]int(nil), w.waiting[n:]...)
		w.flying++
		us := float64(network.Microseconds())
		after(now+us, func() {
			after(servers[node].serve(now, took)+us, func() {
				w.flying--
				if subjects == leased {
					leases[process] = lease{grant, now + lasts}
				}
				for range n {
					done(process)
				}
				send(process, node)
			})
		})
	}
	for process := range processes {
		for range callersEach {
			call(process)
		}
	}
	for now < virtual {
		e := heap.Pop(&queue).(event)
		now = e.at
		e.do()
	}
	s := state{processes: processes, rate: float64(decided) / (virtual * 2 / 3) * 1e6}
	for _, w := range servers {
		s.node = max(s.node, min(1, w.busy/now))
	}
	for _, w := range programs {
		s.process = max(s.process, min(1, w.busy/now))
	}
	return s
}

// work is what a run costs a server besides its trip: a script for each slot, and its decisions.
func (c costs) work(calls []int, subjects string) float64 {
	if subjects != cold {
		return c.script + float64(len(calls))*c.equal
	}
	distinct := make(map[int]bool, len(calls))
	for _, slot := range calls {
		distinct[slot] = true
	}
	return float64(len(distinct))*c.script + float64(len(calls))*c.decision
}
