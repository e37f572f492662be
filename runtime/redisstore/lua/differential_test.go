package lua

import (
	"context"
	"flag"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

var differentialSteps = flag.Int("differential.steps", 40_000, "how many calls the engine and the script are compared in")

// virtualClock reads the time from a key. It replaces clock.lua in the script under test.
const virtualClock = "local function clock() return tonumber(call('GET', 'clock')) end"

const stepsOfACheck = 50

// TestScriptLikeEngine drives the engine and the script with one virtual clock and compares every answer. The clock begins ten years in the
// future, so that no key expires during the test. The test compares the expiries that the script sets. The script runs by EVALSHA, which makes
// all its tables anew in each run, or as a function, which caches claims from one run to the next.
func TestScriptLikeEngine(t *testing.T) {
	t.Parallel()
	for i := range max(1, *differentialSteps/(checks*stepsOfACheck)) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			compareRandomly(t)
		})
	}
}

const checks = 100 // of rapid.Check

// compareRandomly makes random calls on a server of its own.
func compareRandomly(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr, ReadTimeout: time.Minute})
	defer client.Close()
	body := join(virtualClock)
	sha, err := client.ScriptLoad(t.Context(), body+"return run(KEYS, ARGV)\n").Result()
	if err != nil {
		t.Fatal(err)
	}
	library := "#!lua name=virtual\n" + body + "redis.register_function('virtual', run)\n"
	if err := client.FunctionLoad(t.Context(), library).Err(); err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		if err := client.FlushDB(context.Background()).Err(); err != nil {
			t.Fatal(err)
		}
		p := &pair{t: t, client: client, cells: make(map[string]*engine.Cell), latest: make(map[string]int64), now: start}
		p.script = rapid.SampledFrom([][]any{{"evalsha", sha}, {"fcall", "virtual"}}).Draw(t, "script")
		p.rules = drawRules(t)
		for range stepsOfACheck {
			p.step()
		}
		p.requireExpiries()
	})
}

const (
	start  = 2_110_000_000_000_000 // in the year 2036
	second = 1_000_000
)

// pair holds the engine and the script, in the same state.
type pair struct {
	t      *rapid.T
	client *redis.Client
	script []any // the command that runs it
	now    int64
	rules  []*engine.Rule
	cells  map[string]*engine.Cell // by the keys of their states
	latest map[string]int64        // the latest expiry that each state had
	taken  []engine.Call           // calls that were admitted and not yet adjusted
}

func drawRules(t *rapid.T) []*engine.Rule {
	every := func(text string) *engine.Schedule {
		spec, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return engine.NewSchedule(spec.Next, true, time.UTC)
	}
	rules := make([]*engine.Rule, rapid.IntRange(1, 5).Draw(t, "rules"))
	for i := range rules {
		r := &engine.Rule{Name: fmt.Sprint("r", i), Kind: rapid.SampledFrom(engine.Kinds()).Draw(t, "kind")}
		r.Tag = fmt.Sprint("kind", r.Kind)
		r.Per = rapid.SampledFrom([]int64{7, 1000, 999_983, second, 60 * second}).Draw(t, "per")
		switch r.Kind {
		case engine.Calendar, engine.DistinctCalendar:
			r.Per, r.Schedule = 0, every(rapid.SampledFrom([]string{"*/5 * * * * *", "*/7 * * * * *", "0 * * * * *"}).Draw(t, "cron"))
		case engine.Anchored, engine.DistinctAnchored:
			r.Per, r.Every = 0, engine.Every{Zone: time.UTC, Days: rapid.IntRange(0, 2).Draw(t, "days")}
			if r.Every.Days == 0 {
				r.Every.Months = 1
			}
		case engine.Warmup:
			r.Warmup = rapid.SampledFrom([]int64{1, 1000, 10 * second}).Draw(t, "warmup")
		case engine.SlidingCounter:
			r.Slices = rapid.SampledFrom([]int64{1, 2, 3, 7, 99, 100, 101, 250, 1200}).Draw(t, "slices")
			r.Slices = min(r.Slices, r.Per)
		}
		if rapid.IntRange(0, 4).Draw(t, "blocks") == 0 {
			r.Block = rapid.SampledFrom([]int64{1000, second}).Draw(t, "block")
			r.BlockMax = rapid.SampledFrom([]int64{0, 1500, 7 * second, 200 * second}).Draw(t, "longest block")
		}
		r.Pausable = r.Schedule == nil && r.Every.Zone == nil && rapid.IntRange(0, 4).Draw(t, "has pauses") == 0
		if r.Kind == engine.TokenBucket {
			r.Lease = rapid.SampledFrom([]int64{0, 1000, 7 * second}).Draw(t, "may lease for")
		}
		rules[i] = r
	}
	return rules
}

func (p *pair) step() {
	p.now += rapid.SampledFrom([]int64{0, 0, 1, 5, 100, 1000, 100_000, second, 7 * second, 60 * second, 24 * 3600 * second, -3, -200_000, -2 * second}).Draw(p.t, "later")
	p.client.Set(context.Background(), "clock", p.now, 0)
	switch n := rapid.IntRange(0, 9).Draw(p.t, "what"); {
	case n < 2 && len(p.taken) > 0:
		p.adjust()
	case n == 2:
		p.changeOther()
	case n == 3:
		p.look()
	case n == 9 && rapid.IntRange(0, 3).Draw(p.t, "a crowd") == 0:
		p.crowd()
	case n == 9:
		p.decide(p.drawCalls(rapid.IntRange(2, 5).Draw(p.t, "calls")))
	default:
		p.decide(p.drawCalls(1))
	}
}

// crowd makes many equal calls that wait, and lets some of them give up, in any order.
func (p *pair) crowd() {
	t, r := p.t, rapid.SampledFrom(p.rules).Draw(p.t, "rule of a crowd")
	if !r.Kind.Accepts("wait") || r.Kind == engine.Calendar || r.Kind == engine.Anchored { // their windows are sent, so after the clock was set back they open fewer
		return
	}
	c := engine.Claim{Ask: engine.Ask{Rule: r, Subject: "a", Cost: rapid.Int64Range(1, 2).Draw(t, "cost"), Limit: 3, Burst: 3, Wait: 3600 * second}}
	if r.Kind == engine.Warmup {
		c.Burst = 0
	}
	calls := make([]engine.Call, rapid.IntRange(2, 100).Draw(t, "crowd"))
	for i := range calls {
		calls[i] = engine.Call{Prefix: "p", Claims: []engine.Claim{c}}
	}
	p.taken = nil
	p.decide(calls)
	waiting := rapid.Permutation(slices.DeleteFunc(p.taken, func(call engine.Call) bool { return call.Claims[0].At <= p.now })).Draw(t, "order")
	p.taken = nil
	for _, call := range waiting[:rapid.IntRange(0, len(waiting)).Draw(t, "give up")] {
		call.Rollback, call.Claims[0].Delta = true, -call.Claims[0].Charged
		p.change(call)
	}
	k := "p:" + r.Name + ":{a}:free-places:" + r.Tag
	if n := p.client.ZCard(context.Background(), k).Val(); int(n) != p.cellsOf(&calls[0])[0].FreePlaces() {
		t.Fatalf("the script has %d intervals, the engine %d", n, p.cellsOf(&calls[0])[0].FreePlaces())
	}
}

func (p *pair) drawCall() engine.Call {
	t := p.t
	call := engine.Call{Prefix: "p"}
	patient := rapid.Bool().Draw(t, "patient")
	switch rapid.IntRange(0, 9).Draw(t, "kind of call") {
	case 0:
		call.Peek = true
	case 1:
		call.Report = true
	case 2:
		call.UpTo, patient = true, false
	case 3:
		call.Refused = true
	case 4:
		call.Grows, patient = true, false
	}
	cost := rapid.Int64Range(1, 6).Draw(t, "cost")
	for _, r := range p.rules {
		call.UpTo = call.UpTo && r.Kind.Accepts("up-to")
	}
	if rapid.IntRange(0, 3).Draw(t, "leases") == 0 {
		if lease := p.drawLease(cost); len(lease.Claims) > 0 {
			return lease
		}
	}
	for _, r := range p.rules {
		if rapid.IntRange(0, 3).Draw(t, "left out") == 0 && len(call.Claims) > 0 {
			continue
		}
		c := engine.Claim{Ask: engine.Ask{Rule: r, Subject: rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "subject"), Cost: cost}}
		c.Limit = rapid.SampledFrom([]int64{3, 3, 3, 5, 10, 1}).Draw(t, "limit")
		c.Burst = rapid.SampledFrom([]int64{c.Limit, c.Limit, 1, 7}).Draw(t, "burst")
		c.Mode = engine.Mode(rapid.SampledFrom([]int{0, 0, 0, 0, 0, 1, 2}).Draw(t, "mode"))
		if r.Block > 0 && rapid.IntRange(0, 3).Draw(t, "without its block") == 0 {
			c.Rule = &engine.Rule{Name: r.Name, Tag: r.Tag, Kind: r.Kind, Per: r.Per, Schedule: r.Schedule, Every: r.Every, Warmup: r.Warmup, Slices: r.Slices, Pausable: r.Pausable}
		}
		if c.Rule.Block > 0 || r.Pausable {
			c.Mode = engine.Enforce
		}
		if r.Kind == engine.Prepaid && rapid.Bool().Draw(t, "leaky") || r.Kind == engine.Warmup {
			c.Burst = 0
		}
		if c.Mode == engine.Trigger && !r.Kind.Accepts("trigger") {
			c.Mode = engine.Enforce
		}
		if r.Kind.Accepts("wait") {
			c.Wait = p.drawWait(patient && c.Mode == engine.Enforce)
		}
		if r.Every.Zone != nil {
			c.Anchor = p.drawAnchor()
			if isCalendar := func(r *engine.Rule) bool { return r.Kind == engine.Calendar }; !slices.ContainsFunc(p.rules, isCalendar) {
				c.Wait = max(c.Wait, 1000*c.Wait) // up to two days, in which a calendar has too many windows to send
			}
			if call.Peek && rapid.Bool().Draw(t, "no anchor") {
				c.Anchor = 0
			}
		}
		if r.Kind.Row().Releases {
			c.ID = rapid.Uint64Range(0, 20).Draw(t, "call")
		}
		if r.Kind.CountsMembers() {
			c.Member, c.Cost = rapid.SampledFrom([]string{"x", "y", "z", "u", "v"}).Draw(t, "member"), 1
		} else if c.Mode != engine.Trigger && !call.UpTo {
			most, _ := c.Most()
			c.Cost = min(c.Cost, most)
		}
		if c.Mode == engine.Shadow && !call.UpTo && rapid.IntRange(0, 2).Draw(t, "never") == 0 {
			c.Cost, c.Wait = 1, engine.NeverFits
		}
		call.Claims = append(call.Claims, c)
	}
	return call
}

// drawLease draws a call that takes permits ahead, under rules that allow it.
func (p *pair) drawLease(cost int64) engine.Call {
	t := p.t
	call := engine.Call{Prefix: "p", Report: rapid.Bool().Draw(t, "report")}
	call.Lease = rapid.SampledFrom([]int64{1, 5, 1000, second, 7 * second}).Draw(t, "lease")
	call.Ahead = rapid.SampledFrom([]int64{1, 2, 5, 150}).Draw(t, "ahead")
	for _, r := range p.rules {
		if !r.Kind.Accepts("lease") || r.Block > 0 || r.Pausable {
			continue
		}
		c := engine.Claim{Ask: engine.Ask{Rule: r, Subject: rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "subject")}}
		c.Limit = rapid.SampledFrom([]int64{3, 5, 10, 200}).Draw(t, "limit")
		c.Burst = rapid.SampledFrom([]int64{c.Limit, c.Limit, 7}).Draw(t, "burst")
		if r.Every.Zone != nil {
			c.Anchor = p.drawAnchor()
		}
		cost = min(cost, c.Limit, c.Burst)
		call.Claims = append(call.Claims, c)
	}
	for i := range call.Claims {
		call.Claims[i].Cost = cost
	}
	return call
}

// drawAnchor draws an anchor near the times at which calls are decided, or about a month away.
func (p *pair) drawAnchor() engine.Anchor {
	at := start + rapid.SampledFrom([]int64{0, 1, second, 7 * second, 60 * second, -12 * 3600 * second, 31 * 86_400 * second, -1000 * 86_400 * second}).Draw(p.t, "anchor")
	anchor, _ := engine.AnchorAt(time.UnixMicro(at))
	return anchor
}

func (p *pair) drawWait(patient bool) int64 {
	if !patient {
		return 0
	}
	return rapid.SampledFrom([]int64{0, 10, 1500, 3 * second, 200 * second}).Draw(p.t, "wait")
}

func (p *pair) cellsOf(call *engine.Call) []*engine.Cell {
	cells := make([]*engine.Cell, len(call.Claims))
	for i := range call.Claims {
		c := &call.Claims[i]
		k := c.Rule.Name + c.Subject
		if p.cells[k] == nil {
			cell := engine.NewCell(c.Rule)
			p.cells[k] = &cell
		}
		cells[i] = p.cells[k]
	}
	return cells
}

// run runs the script. A single peek runs it by a command that lets it write nothing.
func (p *pair) run(r *Run, peeks bool) any {
	args := append(append(slices.Clone(p.script), len(r.Keys)), r.Keys...)
	if peeks && args[0] == "evalsha" {
		args[0] = "evalsha_ro"
	}
	reply, err := p.client.Do(context.Background(), append(args, r.Args...)...).Result()
	if err != nil {
		p.t.Fatalf("the script fails: %v", err)
	}
	return reply
}

func (p *pair) drawCalls(n int) []engine.Call {
	calls := make([]engine.Call, n)
	for i := range calls {
		calls[i] = p.drawCall()
	}
	return calls
}

func (p *pair) decide(calls []engine.Call) {
	run := new(Run)
	for i := range calls {
		run.AddDecision(&calls[i], p.now)
	}
	replies := []any{p.run(run, len(calls) == 1 && calls[0].Peek)}
	if len(calls) > 1 {
		replies = replies[0].([]any)
	}
	var again []engine.Call // decided one by one after the others
	for i := range calls {
		if reply, ok := replies[i].(int64); ok && reply < 0 {
			again = append(again, calls[i])
			continue
		}
		p.compare(calls[i], replies[i])
	}
	for i := range again { // the window was opened before the clock was set back; the engine needs no second try
		run := new(Run)
		run.AddDecision(&again[i], p.now)
		reply := p.run(run, false)
		if t, ok := reply.(int64); ok && t < 0 {
			run = new(Run)
			run.AddDecision(&again[i], -t)
			reply = p.run(run, false)
		}
		p.compare(again[i], reply)
	}
}

// compare decides the call with the engine, too, and compares the answers.
func (p *pair) compare(call engine.Call, reply any) {
	want := call
	want.Claims = append([]engine.Claim(nil), call.Claims...)
	v, err := ReadDecision(reply, &call)
	if err != nil {
		p.t.Fatalf("%v of %+v", err, call)
	}
	wanted := want.Decide(p.cellsOf(&want), p.now)
	p.note(&want)
	if v != wanted {
		p.t.Fatalf("the script says %+v, the engine %+v, of %s", v, wanted, show(&want))
	}
	for i := range want.Claims {
		requireClaim(p.t, &call, &call.Claims[i], &want.Claims[i])
	}
	if v.Admitted && !call.Peek && len(p.taken) < 100 {
		p.taken = append(p.taken, want)
	}
}

// requireClaim compares the results of a claim, field by field.
func requireClaim(t *rapid.T, call *engine.Call, got, want *engine.Claim) {
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("the script says %+v of %+v, the engine %+v, in %s", *got, *got.Rule, *want, show(call))
	}
}

func show(call *engine.Call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "peek %t, report %t, up to %t, refused %t:", call.Peek, call.Report, call.UpTo, call.Refused)
	for _, c := range call.Claims {
		fmt.Fprintf(&b, "\n%+v %+v", *c.Rule, c)
	}
	return b.String()
}

// adjust refunds, rolls back or settles a call.
func (p *pair) adjust() {
	i := rapid.IntRange(0, len(p.taken)-1).Draw(p.t, "which")
	call := p.taken[i]
	p.taken = append(p.taken[:i:i], p.taken[i+1:]...)
	call.Rollback = rapid.Bool().Draw(p.t, "rollback")
	some := engine.Call{Prefix: call.Prefix, Rollback: call.Rollback}
	for _, c := range call.Claims {
		if c.Charged == 0 {
			continue
		}
		c.Delta = -c.Charged
		if !c.Rule.Kind.CountsMembers() && !call.Rollback {
			most := c.MostSettled()
			if most == math.MaxInt64 { // this kind has no debts
				most = 9
			}
			c.Delta = rapid.SampledFrom([]int64{-c.Charged, -c.Charged, -1, 1, 5, most}).Draw(p.t, "delta")
		}
		some.Claims = append(some.Claims, c)
	}
	if len(some.Claims) == 1 && some.Claims[0].Rule.Kind.Row().Releases && rapid.Bool().Draw(p.t, "of several calls") {
		some.IDs = rapid.SliceOfNDistinct(rapid.Uint64Range(0, 20), 1, 9, rapid.ID).Draw(p.t, "calls")
	}
	if len(some.Claims) > 0 {
		p.change(some)
	}
}

// changeOther gives permits that no call has to have taken, takes some, or changes the pause of a subject.
func (p *pair) changeOther() {
	t, r := p.t, rapid.SampledFrom(p.rules).Draw(p.t, "rule")
	limit := rapid.SampledFrom([]int64{3, 5, 10, 1}).Draw(t, "limit")
	c := engine.Claim{Ask: engine.Ask{Rule: r, Subject: rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "subject"), Cost: 1, Limit: limit, Burst: limit}}
	if r.Kind == engine.Warmup {
		c.Burst = 0
	}
	call := engine.Call{Prefix: "p", Change: engine.Gives}
	switch {
	case r.Pausable && rapid.Bool().Draw(t, "pauses"):
		call.Change = rapid.SampledFrom([]engine.Change{engine.Pauses, engine.Repauses, engine.Repauses}).Draw(t, "change")
		c.Delta = rapid.SampledFrom([]int64{1, 1000, second, 9 * second, 100 * second}).Draw(t, "pause")
		if call.Change == engine.Repauses && rapid.IntRange(0, 2).Draw(t, "resumes") == 0 {
			c.Delta = -1
		}
	case r.Kind.CountsMembers():
		return
	default:
		c.Delta = rapid.SampledFrom([]int64{-1, -1, -2, -5, -100, 1, 3}).Draw(t, "give")
		if r.Every.Zone != nil && rapid.Bool().Draw(t, "has an anchor") {
			c.Anchor = p.drawAnchor()
		}
	}
	call.Claims = []engine.Claim{c}
	p.change(call)
}

// change changes the charges of a call by the Deltas of its claims, or what else it says.
func (p *pair) change(some engine.Call) {
	want := some
	want.Claims = slices.Clone(some.Claims)
	v, err := engine.Verdict{}, error(nil)
	at := p.now + rapid.SampledFrom([]int64{0, 0, 0, -second, second, -100 * second, 3600 * second}).Draw(p.t, "the process's clock is ahead")
	for tries := 0; tries < 2 && v.Now == 0; tries++ {
		run := new(Run)
		run.AddAdjustment(&some, at)
		v, err = ReadAdjustment(p.run(run, false), &some)
		if windows, ok := err.(WindowsAt); ok {
			at = int64(windows)
		}
	}
	if v.Now != p.now {
		p.t.Fatalf("adjusting gives %d, error %v", v.Now, err)
	}
	want.Adjust(p.cellsOf(&want), p.now)
	p.note(&want)
	for i, c := range want.Claims {
		if got := some.Claims[i].Delta; got != c.Delta {
			p.t.Fatalf("the script has no room for %d permits, the engine for %d, in %+v %+v", got, c.Delta, *c.Rule, c)
		}
	}
}

// look compares what people see of a count.
func (p *pair) look() {
	t, r := p.t, rapid.SampledFrom(p.rules).Draw(p.t, "rule")
	limit := rapid.SampledFrom([]int64{3, 5, 10, 1}).Draw(t, "limit")
	c := engine.Claim{Ask: engine.Ask{Rule: r, Subject: rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "subject"), Cost: 1, Limit: limit, Burst: limit}}
	if r.Kind == engine.Warmup {
		c.Burst = 0
	}
	call := engine.Call{Prefix: "p", Claims: []engine.Claim{c}}
	got, err := Look(&call, p.now, func(r Run) (any, error) { return p.run(&r, true), nil })
	if want := c.Look(p.cellsOf(&call)[0], p.now); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("the script says %+v, %v, the engine %+v, of %+v %+v", got, err, want, *r, c)
	}
}

// note records until when the states of a call count.
func (p *pair) note(call *engine.Call) {
	for i, cell := range p.cellsOf(call) {
		k := call.Claims[i].Rule.Name + call.Claims[i].Subject
		p.latest[k] = max(p.latest[k], cell.State(call.Claims[i].Rule).Expiry(call.Claims[i].Rule))
	}
}

// requireExpiries checks that every key lives as long as its state counts, and not much longer.
func (p *pair) requireExpiries() {
	for _, r := range p.rules {
		for _, subject := range []string{"a", "b"} {
			cell := p.cells[r.Name+subject]
			if cell == nil || cell.State(r).Expiry(r) <= p.now {
				continue
			}
			expiry, most := cell.State(r).Expiry(r), p.latest[r.Name+subject]+r.Per/4+2*second
			got := p.client.PExpireTime(context.Background(), "p:"+r.Name+":{"+subject+"}:"+r.Tag).Val().Microseconds()
			if got < expiry || got > most {
				p.t.Fatalf("the state of %+v counts until %d and expires at %d", *r, expiry, got)
			}
		}
	}
}
