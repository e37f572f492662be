package faults

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// history is what some clients did at once under one rule, for one subject that nobody asked for before.
type history struct {
	Rule       ratelimit.Rule
	Operations []Operation
}

func modelOf(rule ratelimit.Rule, operations []Operation) Model {
	var entries []Entry
	for _, o := range operations {
		if !o.Change && !o.Waits && !o.Failover {
			entries = append(entries, o.Entry)
		}
	}
	m := Model{
		Law: lawOf(rule, entries, operations), Distinct: rule.Distinct != "", Block: rule.Block.Microseconds(),
		Bucket: rule.Algorithm == ratelimit.TokenBucket || rule.Algorithm == ratelimit.LeakyBucket,
		Waits:  slices.ContainsFunc(operations, func(o Operation) bool { return o.Waits }),
	}
	if rule.Algorithm == ratelimit.SlidingWindow && rule.Cron == "" {
		m.Keeps = rule.Limit
		for _, o := range operations {
			m.Keeps = min(m.Keeps, rule.Limit+o.More)
		}
	}
	return m
}

// lawOf returns the law of a rule. The rule has another limit in each phase. A limit comes into force with the first call of its phase. It stays
// in force until all calls of the phase have had their places and a call of another phase has been decided.
func lawOf(rule ratelimit.Rule, entries []Entry, operations []Operation) Law {
	var laws []inForce
	for _, o := range operations {
		for len(laws) <= o.Phase {
			laws = append(laws, inForce{from: ever, to: -ever})
		}
		l := &laws[o.Phase]
		l.Law = LawOf(higher(rule, o.More), entries)
		l.from, l.to = min(l.from, o.Sent-clockSlack), max(l.to, o.Received, o.At, o.Until)
	}
	if len(laws) < 2 {
		return LawOf(rule, entries)
	}
	for i := range laws {
		next := int64(ever)
		for _, o := range operations {
			if o.Phase != i && o.Received >= laws[i].to && o.Outcome != Unknown && !o.Remembered && !o.Found && !o.Change {
				next = min(next, o.Received)
			}
		}
		laws[i].to = max(laws[i].to, next) + clockSlack
	}
	laws[0].from = -ever
	return joined(laws)
}

func (h history) check() porcupine.CheckResult {
	return modelOf(h.Rule, h.Operations).Linearizable(h.Operations)
}

// rejects returns 1 if the history cannot be that of another rule, else 0.
func (h history) rejects(rule ratelimit.Rule) int {
	h.Rule = rule
	if h.check() == porcupine.Illegal {
		return 1
	}
	return 0
}

// require fails unless the history can be that of one limiter. It keeps the history otherwise.
func (h history) require(t *testing.T) {
	t.Helper()
	got := h.check()
	if got == porcupine.Ok {
		return
	}
	text, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp("", "history-*.json")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(text); err != nil {
		t.Fatal(err)
	}
	t.Errorf("%s: %d operations are %s; to look at them again, move %s to testdata/histories and run TestHistories", h.Rule.Name,
		len(h.Operations), got, file.Name())
}

// higher returns a rule whose limit is higher by so much.
func higher(rule ratelimit.Rule, by int64) ratelimit.Rule {
	rule.Limit += by
	if rule.Burst > 0 {
		rule.Burst += by
	}
	return rule
}

// crowd is clients that make the calls of histories.
type crowd struct {
	limiter   *ratelimit.Limiter
	clients   int
	calls     int           // of each client in a history
	pace      time.Duration // between two calls of a client, in the mean
	kinds     int           // of calls: one permit; two; up to three; with a wait
	impatient bool          // half of the calls end within a millisecond
	failures  int           // calls of a client that may fail in a history; each makes more refusals possible. 0 is 2
	patience  time.Duration // how long calls wait; 0 is 30 ms
	phases    []int64       // by how much the limit of each phase is above that of the rule; none is one phase with the rule's limit
	together  bool          // the phases are made at the same time, by different clients, as by programs of two builds
	overrides bool          // the limits change by overrides
	leavers   int           // calls that wait after each phase, and all give up
}

// allKinds of calls.
const allKinds = 4

// record makes a history under a rule.
func (c *crowd) record(rule ratelimit.Rule, key string) history {
	var ids atomic.Int64
	h := history{Rule: rule}
	phases := c.phases
	if len(phases) == 0 {
		phases = []int64{0}
	}
	clients := make([]client, c.clients)
	for i := range clients {
		clients[i] = client{crowd: c, key: key, ids: &ids}
		clients[i].enter(rule, i%len(phases), phases[i%len(phases)])
	}
	for phase, more := range phases {
		if !c.together {
			for i := range clients {
				clients[i].enter(rule, phase, more)
			}
		}
		var group sync.WaitGroup
		for i := range clients {
			group.Go(clients[i].run)
		}
		group.Wait()
		if len(phases) > 1 {
			h.Operations = append(h.Operations, clients[0].leave()...)
			time.Sleep(rand.N([]time.Duration{time.Millisecond, 2 * rule.Per, 4 * rule.Per}[rand.IntN(3)] + 1))
		}
	}
	for _, client := range clients {
		h.Operations = append(h.Operations, client.done...)
	}
	return h
}

// enter begins a phase, in which the limit of the rule is higher by so much.
func (c *client) enter(rule ratelimit.Rule, phase int, more int64) {
	changed := higher(rule, more)
	c.phase, c.more, c.rule = phase, more, changed
	if !c.overrides {
		return
	}
	c.rule = rule
	if err := c.limiter.Overrides().SetLocal(rule.Name, ratelimit.Override{Limit: &changed.Limit, Burst: changed.Burst}); err != nil {
		panic(err)
	}
}

// leave takes what there is. Then it makes calls that wait at the same time and give up in any order. It returns nothing if they left nothing: they
// all gave up before the first place, and the store has all their places back.
func (c *client) leave() (all []Operation) {
	if c.rule.Algorithm == ratelimit.SlidingCounter || c.rule.Block > 0 || c.rule.Distinct != "" {
		return nil // no call waits
	}
	q := ratelimit.Request{Rule: c.rule, Key: c.key, Cost: 1}
	d, _ := c.decide(context.Background(), Operation{ID: int(c.ids.Add(1))}, q)
	for n := 0; d.Allowed && n < 100; n++ {
		time.Sleep(time.Microsecond) // or all were at the same time, and could have been in any order
		d, _ = c.decide(context.Background(), Operation{ID: int(c.ids.Add(1))}, q)
	}
	place := d.At.Add(d.RetryAfter).UnixMicro()
	leavers := make([]client, c.leavers)
	var group sync.WaitGroup
	for i := range leavers {
		leavers[i] = *c
		leavers[i].done = nil
		group.Go(func() {
			deadline := time.Now().Add(10 * c.rule.Per)
			ctx, cancel := context.WithDeadline(context.Background(), deadline)
			defer cancel()
			defer time.AfterFunc(rand.N(2*time.Millisecond), cancel).Stop()
			o := Operation{ID: int(c.ids.Add(1)), Waits: true, Until: deadline.UnixMicro()}
			leavers[i].decide(ctx, o, q)
		})
	}
	group.Wait()
	for _, l := range leavers {
		all = append(all, l.done...)
	}
	if !slices.ContainsFunc(all, func(o Operation) bool {
		return o.Outcome != Unknown || !errors.Is(o.Err, context.Canceled) || o.Received >= place
	}) && c.hasAllBack(q, place) {
		return nil
	}
	return all
}

// hasAllBack waits until the next call would have the first place again, and reports whether that was before the time of that place. A store gives
// back the place of a call that left before its answer came, but nobody waits for that.
func (c *client) hasAllBack(q ratelimit.Request, place int64) bool {
	for {
		d, err := c.limiter.Peek(context.Background(), q)
		switch {
		case err != nil || d.At.UnixMicro() >= place:
			return false
		case d.Allowed || d.At.Add(d.RetryAfter).UnixMicro() <= place && d.Source != ratelimit.SourceMemory:
			return true
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// client makes one call after the other.
type client struct {
	*crowd
	rule    ratelimit.Rule
	key     string
	ids     *atomic.Int64
	phase   int
	more    int64
	done    []Operation
	unknown int // calls that failed
}

// run makes the calls. Half of the time a client goes on almost at once, so that calls meet on the way.
func (c *client) run() {
	for n := 0; n < c.calls && c.unknown < cmp.Or(c.failures, 2); {
		if !c.call() {
			time.Sleep(10 * time.Millisecond) // the server is away
			continue
		}
		n++
		time.Sleep(rand.N([]time.Duration{50 * time.Microsecond, 4 * c.pace}[rand.IntN(2)]))
	}
}

// call makes a call of a random kind, and may change what it was charged. It reports whether the call was sent.
func (c *client) call() bool {
	q := ratelimit.Request{Rule: c.rule, Key: c.key, Cost: 1}
	o := Operation{ID: int(c.ids.Add(1))}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	prepaid, single := c.rule.Prepay || c.rule.Warmup > 0, c.rule.Algorithm == ratelimit.LeakyBucket
	switch kind := rand.IntN(c.kinds); {
	case c.rule.Distinct != "":
		q.Member = fmt.Sprint("member", rand.IntN(6))
	case kind == 1 && !single:
		q.Cost = 2
	case kind == 2 && !single && !prepaid:
		q.UpTo, q.Cost = true, 3
	case kind == 3 && c.rule.Algorithm != ratelimit.SlidingCounter && c.rule.Block == 0:
		o.Waits = true
		deadline := time.Now().Add(cmp.Or(c.patience, 30*time.Millisecond))
		o.Until = deadline.UnixMicro()
		patient, stop := context.WithDeadline(ctx, deadline)
		defer stop()
		ctx = patient
		if rand.IntN(2) == 0 {
			defer time.AfterFunc(rand.N(10*time.Millisecond), cancel).Stop() // it gives up
		}
	}
	if c.impatient && rand.IntN(2) == 0 {
		defer time.AfterFunc(rand.N(time.Millisecond), cancel).Stop()
	}
	d, sent := c.decide(ctx, o, q)
	if d.Allowed && c.kinds == allKinds && rand.IntN(3) == 0 {
		c.change(d, c.done[len(c.done)-1])
	}
	return sent
}

// decide makes a call and writes it down, unless it was certainly not sent.
func (c *client) decide(ctx context.Context, o Operation, q ratelimit.Request) (d ratelimit.Decision, sent bool) {
	var b Book
	decide := c.limiter.Allow
	if o.Waits {
		decide = c.limiter.Wait
	}
	d = b.Call(ctx, decide, q)
	o.Phase, o.More = c.phase, c.more
	o.Entry, o.UpTo, o.Taken, o.Remembered = b.entries[0], q.UpTo, d.Taken, wasRemembered(b.entries[0], d)
	o.Found = d.Source == ratelimit.SourceBlock && !o.Remembered
	switch {
	case o.Outcome == Unknown && ctx.Err() == nil && unsent(o.Err): // a call that gave up may have had a place that it could not give back
		return d, false
	case o.Outcome == Unknown && ctx.Err() == nil:
		c.unknown++
	case o.UpTo && o.Outcome == Refused:
		o.Cost = 1
	}
	c.done = append(c.done, o)
	return d, true
}

// unsent reports whether a call failed before it was decided: nobody listened, the client did not try again so soon, or a node of a
// cluster said that the cluster is not ready.
func unsent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" || strings.Contains(err.Error(), "not tried") || strings.Contains(err.Error(), "CLUSTERDOWN")
}

// change gives back what a call was charged, or changes it.
func (c *client) change(d ratelimit.Decision, o Operation) {
	o.Change, o.Cost, o.Sent = true, 0, time.Now().UnixMicro()
	var err error
	if c.rule.Distinct == "" && rand.IntN(2) == 0 {
		o.Cost = rand.Int64N(5)
		err = d.Settle(context.Background(), o.Cost)
	} else {
		err = d.Refund(context.Background())
	}
	if err != nil {
		o.Outcome, o.Err = Unknown, err
	}
	o.Received = time.Now().UnixMicro()
	c.done = append(c.done, o)
}
