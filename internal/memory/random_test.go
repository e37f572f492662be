package memory

import (
	"flag"
	"fmt"
	"hash/maphash"
	"reflect"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// TestStoreLikeEngine compares the store with cells that are never moved or removed.
func TestStoreLikeEngine(t *testing.T) {
	checks := flag.Lookup("rapid.checks").Value
	usual := checks.String()
	defer checks.Set(usual)
	checks.Set("3000")
	rapid.Check(t, func(t *rapid.T) {
		clock := &hand{now: 1_000_000_000_000}
		m := &model{t: t, clock: clock, store: New(clock.time, 1e6, 1<<30), cells: make(map[string]*engine.Cell)}
		m.rules = rapid.SliceOfN(rapid.Custom(drawRule), 1, 4).Draw(t, "rules")
		for i := range m.rules {
			m.rules[i].Name = fmt.Sprint("r", i)
		}
		t.Repeat(map[string]func(*rapid.T){
			"":       func(t *rapid.T) { requireWhole(t, m.store) },
			"later":  func(t *rapid.T) { clock.now += rapid.SampledFrom([]int64{1, 7, 900, 5000, 70_000}).Draw(t, "by") },
			"decide": m.decide,
			"more":   m.decide,
			"adjust": m.adjust,
			"reset":  m.reset,
			"sweep":  func(*rapid.T) { m.store.makeRoom(m.store.clock.now()) },
		})
	})
}

// hand is a clock that the test moves, in microseconds.
type hand struct{ now int64 }

func (h *hand) time() time.Time { return time.UnixMicro(h.now) }

type model struct {
	t     *rapid.T
	clock *hand
	store *Store
	rules []engine.Rule
	cells map[string]*engine.Cell
	taken []engine.Call // calls that were admitted and not yet adjusted
}

func drawRule(t *rapid.T) engine.Rule {
	r := engine.Rule{Kind: rapid.SampledFrom(engine.Kinds()).Draw(t, "kind"), Tag: "w"}
	r.Per = rapid.SampledFrom([]int64{7, 1000, 10_000}).Draw(t, "per")
	switch r.Kind {
	case engine.Calendar, engine.DistinctCalendar:
		r.Per, r.Schedule = 0, engine.NewSchedule(everySecond, true, time.UTC)
	case engine.Anchored, engine.DistinctAnchored:
		r.Per, r.Every = 0, engine.Every{Days: 1, Zone: time.UTC}
	case engine.Warmup:
		r.Warmup = rapid.SampledFrom([]int64{1, 1000}).Draw(t, "warmup")
	case engine.SlidingCounter:
		r.Slices = rapid.Int64Range(1, 7).Draw(t, "slices")
	}
	if rapid.IntRange(0, 4).Draw(t, "blocks") == 0 {
		r.Block = 1000
	}
	return r
}

func everySecond(t time.Time) time.Time { return t.Truncate(time.Second).Add(time.Second) }

func (m *model) draw(t *rapid.T) engine.Call {
	call := engine.Call{Prefix: rapid.SampledFrom([]string{"p", "q"}).Draw(t, "prefix")}
	switch rapid.IntRange(0, 9).Draw(t, "how") {
	case 0:
		call.Peek = true
	case 1:
		call.Report = true
	case 2:
		call.UpTo = true
	case 3:
		call.Refused = true
	}
	cost := rapid.Int64Range(1, 3).Draw(t, "cost")
	for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(0, len(m.rules)-1), 1, -1, rapid.ID).Draw(t, "of rules") {
		c := drawClaim(t, &m.rules[i], cost)
		call.UpTo = call.UpTo && c.Rule.Kind.Accepts("up-to")
		call.Claims = append(call.Claims, c)
	}
	if call.UpTo {
		for i := range call.Claims {
			call.Claims[i].Cost, call.Claims[i].Wait = cost, 0
		}
	}
	return call
}

func drawClaim(t *rapid.T, r *engine.Rule, cost int64) engine.Claim {
	equal := *r // an equal rule, as a program has that prepares a rule again
	c := engine.Claim{Ask: engine.Ask{Rule: rapid.SampledFrom([]*engine.Rule{r, &equal}).Draw(t, "rule"), Cost: cost}}
	c.Subject = rapid.SampledFrom([]string{"a", "a", "b", "c", "a longer one that is a text of its own"}).Draw(t, "subject")
	c.Limit = rapid.SampledFrom([]int64{3, 3, 5, 100}).Draw(t, "limit")
	c.Burst = rapid.SampledFrom([]int64{c.Limit, 3, 7}).Draw(t, "burst")
	if r.Kind.Accepts("wait") && rapid.Bool().Draw(t, "patient") {
		c.Wait = rapid.SampledFrom([]int64{10, 1500, 100_000}).Draw(t, "wait")
	}
	if r.Kind.CountsMembers() {
		c.Member, c.Cost = rapid.SampledFrom([]string{"x", "y", "z", "u", "v"}).Draw(t, "member"), 1
	}
	if r.Every.Days > 0 {
		c.Anchor, _ = engine.AnchorAt(time.UnixMicro(rapid.SampledFrom([]int64{10, 2000, 100_000, -1000}).Draw(t, "anchor")))
	}
	if r.Kind == engine.Warmup {
		c.Burst = 0
	}
	if r.Kind.Accepts("trigger") && r.Block == 0 {
		c.Mode = engine.Mode(rapid.SampledFrom([]int{0, 0, 0, 1, 2}).Draw(t, "mode"))
	}
	if c.Mode != engine.Enforce {
		c.Wait = 0
	}
	return c
}

func (m *model) cellsOf(call *engine.Call) (cells []*engine.Cell) {
	for i := range call.Claims {
		c := &call.Claims[i]
		name := call.Prefix + c.Rule.Name + c.Subject
		if m.cells[name] == nil {
			cell := engine.NewCell(c.Rule)
			m.cells[name] = &cell
		}
		cells = append(cells, m.cells[name])
	}
	return cells
}

func (m *model) decide(t *rapid.T) {
	call := m.draw(t)
	want := call
	want.Claims = append([]engine.Claim(nil), call.Claims...)
	cells := m.cellsOf(&want)
	most := mostOf(cells, want.Claims, func(cell *engine.Cell, c *engine.Claim) int64 { return cell.Grows(c, m.clock.now) })
	wanted := want.Decide(cells, m.clock.now)
	requireSizes(t, cells, most)
	v, err := m.store.Decide(t.Context(), &call)
	if err != nil || v != wanted || !reflect.DeepEqual(call, want) {
		t.Fatalf("the store says %+v, %+v, error %v; the engine %+v, %+v", v, call, err, wanted, want)
	}
	if v.Admitted && !call.Peek {
		m.taken = append(m.taken, call)
	}
}

func (m *model) adjust(t *rapid.T) {
	if len(m.taken) == 0 {
		return
	}
	i := rapid.IntRange(0, len(m.taken)-1).Draw(t, "which")
	taken := m.taken[i]
	m.taken = append(m.taken[:i:i], m.taken[i+1:]...)
	call := engine.Call{Prefix: taken.Prefix, Rollback: rapid.Bool().Draw(t, "rollback")}
	for _, c := range taken.Claims {
		if c.Charged == 0 {
			continue
		}
		c.Delta = -c.Charged
		if c.Member == "" && !call.Rollback {
			c.Delta = rapid.SampledFrom([]int64{-c.Charged, -1, 1, 5}).Draw(t, "delta")
		}
		call.Claims = append(call.Claims, c)
	}
	want := call
	want.Claims = append([]engine.Claim(nil), call.Claims...)
	cells := m.cellsOf(&want)
	most := mostOf(cells, want.Claims, func(cell *engine.Cell, c *engine.Claim) int64 {
		taken := *c
		taken.Cost = max(0, c.Delta)
		return cell.Grows(&taken, m.clock.now) + cell.FreeGrows(c, m.clock.now)
	})
	want.Adjust(cells, m.clock.now)
	requireSizes(t, cells, most)
	if err := m.store.Adjust(t.Context(), &call); err != nil || !reflect.DeepEqual(call, want) {
		t.Fatalf("the store gives %+v, error %v; the engine %+v", call, err, want)
	}
}

// mostOf returns the largest sizes that cells may have after a call, by what grows says.
func mostOf(cells []*engine.Cell, claims []engine.Claim, grows func(*engine.Cell, *engine.Claim) int64) (most []int64) {
	for i, cell := range cells {
		most = append(most, cell.Size()+grows(cell, &claims[i]))
	}
	return most
}

// requireSizes checks that no cell has grown by more than the store reserves.
func requireSizes(t *rapid.T, cells []*engine.Cell, most []int64) {
	for i, cell := range cells {
		if cell.Size() > most[i] {
			t.Fatalf("a cell of %d bytes was to have at most %d", cell.Size(), most[i])
		}
	}
}

func (m *model) reset(t *rapid.T) {
	call := m.draw(t)
	want := 0
	for i, cell := range m.cellsOf(&call) {
		c := &call.Claims[i]
		if cell.Expiry(c.Rule) > m.clock.now {
			want++
		}
		*cell = engine.NewCell(c.Rule)
	}
	if n, err := m.store.Reset(t.Context(), &call); err != nil || n != want {
		t.Fatalf("the store forgets %d, error %v; expected %d", n, err, want)
	}
}

// requireWhole checks that the data structures of a store are consistent. No call may be running.
func requireWhole(t interface{ Fatalf(string, ...any) }, s *Store) {
	keys, bytes := int64(0), int64(0)
	for i := range s.shards {
		shard := &s.shards[i]
		groups := make(map[*group]int)
		for n := range shard.count {
			e := shard.at(n)
			c := &engine.Claim{Ask: engine.Ask{Rule: e.rule, Subject: e.subject}}
			own, hash := s.place(maphash.String(s.seed, e.subject), e.rule)
			if found, at := shard.find(e.space, e.prefix, c, hash); found != e || at != n || own != shard {
				t.Fatalf("entry %d of shard %d is found at %d", n, i, at)
			}
			if at := e.cell.Expiry(e.rule); at < shard.soonest.Load() {
				t.Fatalf("entry %d of shard %d expires at %d, before %d", n, i, at, shard.soonest.Load())
			}
			groups[e.group]++
			keys++
			bytes += e.size()
		}
		if len(shard.groups) != len(groups) || len(shard.pages) != (shard.count+perPage-1)/perPage {
			t.Fatalf("shard %d has %d entries, %d groups of %d, %d pages", i, shard.count, len(shard.groups), len(groups), len(shard.pages))
		}
		for g, n := range groups {
			bytes += groupBytes
			if g.entries != n {
				t.Fatalf("a group counts %d entries; expected %d", g.entries, n)
			}
		}
	}
	if s.bound.keys.Load() != keys || s.bound.bytes.Load() != bytes {
		t.Fatalf("%d keys and %d bytes are counted; expected %d and %d", s.bound.keys.Load(), s.bound.bytes.Load(), keys, bytes)
	}
}

// Calls of all kinds by many goroutines, each with several subjects in any order, leave a consistent store and take no more than the limit.
func TestConcurrentCalls(t *testing.T) {
	const goroutines, each, subjects, limit = 8, 2000, 5, 3000
	s := New(nil, 1000, 1<<30)
	counted := &engine.Rule{Name: "counted", Kind: engine.FixedWindow, Per: 1e12}
	others := make([]*engine.Rule, 0, 9)
	for _, kind := range engine.Kinds() {
		others = append(others, &engine.Rule{Name: fmt.Sprint(kind), Kind: kind, Per: 50, Slices: 5, Warmup: 10,
			Schedule: engine.NewSchedule(everySecond, true, time.UTC)})
	}
	var admitted [goroutines][subjects]int64
	var running sync.WaitGroup
	for g := range goroutines {
		running.Go(func() {
			for i := range each {
				subject := (i*g + g) % subjects
				call := callOf(fmt.Sprint(subject), limit, counted, others[i%len(others)])
				call.Claims[1].Subject, call.Claims[1].Mode, call.Claims[1].Member = fmt.Sprint(i%subjects), engine.Shadow, fmt.Sprint(i%7)
				v, err := s.Decide(t.Context(), call)
				if err != nil {
					t.Error(err)
				}
				if v.Admitted {
					admitted[g][subject]++
				}
				if v.Admitted && i%5 == 0 {
					admitted[g][subject]--
					call.Claims[0].Delta, call.Claims[1].Delta = -1, -call.Claims[1].Charged
					if err := s.Adjust(t.Context(), call); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	running.Wait()
	requireWhole(t, s)
	for subject := range subjects {
		sum := int64(0)
		for g := range goroutines {
			sum += admitted[g][subject]
		}
		call := callOf(fmt.Sprint(subject), limit, counted)
		call.Peek = true
		if _, err := s.Decide(t.Context(), call); err != nil || sum > limit || call.Claims[0].Room != limit-sum {
			t.Errorf("subject %d has room for %d, error %v, after %d of %d", subject, call.Claims[0].Room, err, sum, limit)
		}
	}
}
