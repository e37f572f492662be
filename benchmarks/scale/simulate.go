package main

import (
	"container/heap"
	"math/rand/v2"
	"time"
)

const (
	cores       = 4                      // of a process
	callersEach = 64                     // callers in a process; each calls again at once
	network     = 100 * time.Microsecond // the time from a process to a server
	flying      = 2                      // runs of a process that are sent to a node at the same time, as in package redisstore
	mostCalls   = 256                    // calls in a run
	slots       = 16384
	grant       = 10_000  // the largest number of permits in a lease
	lasts       = 200_000 // the length of a lease, in microseconds
	virtual     = 60_000  // the simulated time, in microseconds; the first third is not counted
)

// state is the result of a simulation.
type state struct {
	processes     int
	rate          float64 // decisions a second
	node, process float64 // how busy the busiest one is, from 0 to 1
}

// saturate adds processes until a tenth more of them brings little, and returns the last result.
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

// event is something to do at a time.
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

// serve returns when a task is done that arrives at a time and takes took.
func (w *worker) serve(at, took float64) float64 {
	w.free = max(w.free, at) + took
	w.busy += took
	return w.free
}

// way is the connection of a process to a node.
type way struct {
	flying  int
	waiting []int // the slots of the calls that wait for a run
}

// lease is permits that a process has taken ahead.
type lease struct {
	left int
	end  float64
}

// simulation simulates processes that call nodes in virtual time. A process takes some time for each decision. A node decides one run after the
// other.
type simulation struct {
	costs    costs
	subjects string
	random   *rand.Rand
	queue    events
	now      float64 // microseconds
	decided  int     // decisions that count

	nodes, processes []worker
	ways             []way   // of each process to each node
	leases           []lease // of each process
}

func simulate(c costs, subjects string, nodes, processes int) state {
	s := &simulation{
		costs: c, subjects: subjects, random: rand.New(rand.NewPCG(1, uint64(nodes*1000+processes))),
		nodes: make([]worker, nodes), processes: make([]worker, processes),
		ways: make([]way, nodes*processes), leases: make([]lease, processes),
	}
	for process := range processes {
		for range callersEach {
			s.call(process)
		}
	}
	for s.now < virtual {
		e := heap.Pop(&s.queue).(event)
		s.now = e.at
		e.do()
	}
	return state{
		processes: processes, rate: float64(s.decided) / (virtual * 2 / 3) * 1e6,
		node: s.busiest(s.nodes), process: s.busiest(s.processes),
	}
}

func (s *simulation) busiest(workers []worker) (share float64) {
	for _, w := range workers {
		share = max(share, min(1, w.busy/s.now))
	}
	return share
}

func (s *simulation) after(at float64, do func()) { heap.Push(&s.queue, event{at, do}) }

// call makes a caller of a process ask for a decision, and then for the next one.
func (s *simulation) call(process int) {
	each := map[string]float64{cold: s.costs.client, hot: s.costs.clientEqual, leased: s.costs.leased}[s.subjects] / cores
	s.after(s.processes[process].serve(s.now, each), func() {
		if l := &s.leases[process]; l.left > 0 && s.now < l.end {
			l.left--
			s.done(process)
			return
		}
		slot := 0
		if s.subjects == cold {
			slot = s.random.IntN(slots)
		}
		node := slot * len(s.nodes) / slots
		w := &s.ways[process*len(s.nodes)+node]
		w.waiting = append(w.waiting, slot)
		s.send(process, node)
	})
}

func (s *simulation) done(process int) {
	if s.now > virtual/3 {
		s.decided++
	}
	s.call(process)
}

// send sends the calls that wait for a node, unless enough runs are being sent.
func (s *simulation) send(process, node int) {
	w := &s.ways[process*len(s.nodes)+node]
	if w.flying == flying || len(w.waiting) == 0 {
		return
	}
	n := min(len(w.waiting), mostCalls)
	took := s.costs.trip + s.costs.work(w.waiting[:n], s.subjects)
	w.waiting = append([]int(nil), w.waiting[n:]...)
	w.flying++
	us := float64(network.Microseconds())
	s.after(s.now+us, func() {
		s.after(s.nodes[node].serve(s.now, took)+us, func() {
			w.flying--
			if s.subjects == leased {
				s.leases[process] = lease{grant, s.now + lasts}
			}
			for range n {
				s.done(process)
			}
			s.send(process, node)
		})
	})
}

// work returns how long a server works on a run: on a script for each slot, and on the decisions of each script. It leaves out the round trip.
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
