package redisstore

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/robfig/cron/v3"
	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/memory"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

const second = 1_000_000

// connect returns a client of the server at addr, which is closed when the test ends.
func connect(t testing.TB, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// Most tests need the servers' own decisions, and a timeout that is long enough for a busy machine.
var asking = []Option{WithTimeout(time.Minute), WithRefusalMemory(0)}

// open returns a store on a new server.
func open(t testing.TB, options ...Option) (*store, *redistest.Server) {
	server := redistest.Start(t)
	return New(connect(t, server.Addr), append(slices.Clone(asking), options...)...).(*store), server
}

// model is the engine on cells of its own. It repeats the decisions of a store, at the same times.
type model map[string]*engine.Cell

func (m model) cells(call *engine.Call) []*engine.Cell {
	cells := make([]*engine.Cell, len(call.Claims))
	for i := range call.Claims {
		c := &call.Claims[i]
		k := c.Rule.Name + " " + c.Subject
		if m[k] == nil {
			cell := engine.NewCell(c.Rule)
			m[k] = &cell
		}
		cells[i] = m[k]
	}
	return cells
}

func schedule(t rapid.TB, text string) *engine.Schedule {
	spec, err := cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return engine.NewSchedule(spec.Next, true, time.UTC)
}

func drawRules(t *rapid.T) []*engine.Rule {
	rules := make([]*engine.Rule, rapid.IntRange(1, 4).Draw(t, "rules"))
	for i := range rules {
		kind := rapid.SampledFrom(engine.Kinds()).Draw(t, "kind")
		r := &engine.Rule{Name: fmt.Sprint("r", i), Tag: fmt.Sprint("kind", kind), Kind: kind}
		r.Per = rapid.SampledFrom([]int64{50_000, second, 60 * second}).Draw(t, "per")
		switch kind {
		case engine.Calendar, engine.DistinctCalendar:
			r.Per, r.Schedule = 0, schedule(t, rapid.SampledFrom([]string{"* * * * * *", "0 * * * * *"}).Draw(t, "cron"))
		case engine.Anchored, engine.DistinctAnchored:
			r.Per, r.Every = 0, engine.Every{Months: 1, Zone: time.UTC}
		case engine.Warmup:
			r.Warmup = 10 * second
		case engine.SlidingCounter:
			r.Slices = 5
		}
		if rapid.IntRange(0, 4).Draw(t, "blocks") == 0 {
			r.Block = 100_000
		}
		rules[i] = r
	}
	return rules
}

func drawCall(t *rapid.T, rules []*engine.Rule) engine.Call {
	call := engine.Call{Prefix: "p"}
	switch rapid.IntRange(0, 7).Draw(t, "kind of call") {
	case 0:
		call.Peek = true
	case 1:
		call.Report = true
	case 2:
		call.Refused = true
	}
	for _, r := range rules {
		c := engine.Claim{Ask: engine.Ask{Rule: r, Subject: rapid.SampledFrom([]string{"a", "a", "b"}).Draw(t, "subject"), Limit: 5, Burst: 5, Cost: 1}}
		c.ID = rapid.Uint64Range(0, 20).Draw(t, "call")
		if r.Kind == engine.Warmup {
			c.Burst = 0
		}
		if !r.Kind.CountsMembers() {
			c.Cost = rapid.Int64Range(1, 3).Draw(t, "cost")
		} else {
			c.Member = rapid.SampledFrom([]string{"x", "y", "z"}).Draw(t, "member")
		}
		if r.Kind.Accepts("wait") {
			c.Wait = rapid.SampledFrom([]int64{0, 0, 1000, second, 50 * second}).Draw(t, "wait") // within the 64 windows that the script knows
		}
		if r.Every.Months > 0 {
			c.Anchor, _ = engine.AnchorAt(time.Unix(rapid.Int64Range(-1e9, 4e9).Draw(t, "anchor"), 0))
		}
		call.Claims = append(call.Claims, c)
	}
	return call
}

// TestStoresAnswerAlike makes random calls to a store on Redis and to the store in memory, whose clock then shows the server's time. It compares
// all that the stores answer, field by field.
func TestStoresAnswerAlike(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]Option{"functions": nil, "scripts": {WithoutFunctions()}} {
		t.Run(name, func(t *testing.T) {
			s, server := open(t, options...)
			rapid.Check(t, func(t *rapid.T) {
				server.Do("FLUSHDB")
				p, rules := &pair{redis: s}, drawRules(t)
				p.memory = memory.New(func() time.Time { return time.UnixMicro(p.now) }, memory.MaxKeys, memory.MaxBytes)
				for range rapid.IntRange(1, 20).Draw(t, "calls") {
					p.compare(t, drawCall(t, rules))
				}
			})
		})
	}
}

// pair are two stores that decide the same calls. now is the time of the last one.
type pair struct {
	redis  *store
	memory *memory.Store
	now    int64
}

func (p *pair) compare(t *rapid.T, call engine.Call) {
	want := *call.Clone()
	v, err := p.redis.Decide(t.Context(), &call)
	p.now = v.Now
	w, failed := p.memory.Decide(t.Context(), &want)
	if v != w || err != nil || failed != nil {
		t.Fatalf("Redis says %+v (error %v), memory %+v (error %v) of %+v", v, err, w, failed, want)
	}
	if !reflect.DeepEqual(call.Claims, want.Claims) {
		t.Fatalf("Redis says %+v, memory %+v", call.Claims, want.Claims)
	}
	if v.Admitted && !call.Peek && rapid.IntRange(0, 3).Draw(t, "give back") == 0 {
		p.giveBack(t, call, want)
	}
}

func (p *pair) giveBack(t *rapid.T, call, want engine.Call) {
	rollback := rapid.Bool().Draw(t, "rollback")
	for _, call := range []*engine.Call{&call, &want} {
		call.Undo()
		call.Rollback = rollback
	}
	r := request{call: &call, adjust: true}
	if err := p.redis.do(t.Context(), &r); err != nil {
		t.Fatal(err)
	}
	p.now = r.verdict.Now
	if err := p.memory.Adjust(t.Context(), &want); err != nil {
		t.Fatal(err)
	}
}

func TestWrongArgumentsPanic(t *testing.T) {
	for want, f := range map[string]func(){
		"redisstore.New: the client is nil":                                      func() { New((*redis.Client)(nil)) },
		"redisstore.WithTimeout: found 0s, expected a positive duration":         func() { WithTimeout(0) },
		"redisstore.WithRefusalMemory: found -1s, expected no negative duration": func() { WithRefusalMemory(-time.Second) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic %v, want %q", got, want)
				}
			}()
			f()
		}()
	}
}

func TestCommandsOfAWrongRule(t *testing.T) {
	rule := ratelimit.Rule{Name: "r", Limit: 1, Cron: "@daily", TZ: "Mars/Base"}
	if _, err := Commands(ratelimit.PerMinute(1), rule); err == nil || !strings.HasPrefix(err.Error(), `rule "r": tz: unknown time zone`) {
		t.Errorf("got error %v", err)
	}
}

// If a reply is not one of the script, each call of the run fails.
func TestStrangeReply(t *testing.T) {
	rule := &engine.Rule{Name: "r", Per: 1e6}
	for _, reply := range []any{nil, "OK", []any{}, []any{int64(1)}, []any{"a", "b", "c"}, []any{[]any{}, nil}} {
		run := &run{reply: reply}
		for range 2 {
			call := of(rule, 1, "k")
			run.calls = append(run.calls, runCall{call: &call, requests: []*request{{call: &call}, {call: &call}}})
		}
		run.answer(new(store), moment{})
		for _, j := range run.calls {
			for _, r := range j.requests {
				if r.err != lua.ErrReply {
					t.Errorf("the reply %v gives error %v", reply, r.err)
				}
			}
		}
	}
}

// equal tells calls apart, even if their hashes are equal.
func TestEqual(t *testing.T) {
	rule := &engine.Rule{Name: "r", Tag: "1m", Per: 1e6}
	for same, change := range map[*engine.Call]func(*engine.Call){
		{Prefix: "p"}: func(c *engine.Call) { c.Prefix = "q" },
		{Prefix: "q"}: func(c *engine.Call) { c.Claims = c.Claims[:1] },
		{Prefix: "r"}: func(c *engine.Call) { c.Claims[1].Subject = "other" },
		{Prefix: "s"}: func(c *engine.Call) { c.Claims[1].Limit = 2 },
		{Prefix: "t"}: func(c *engine.Call) { c.Claims[1].Burst = 2 },
		{Prefix: "u"}: func(c *engine.Call) { c.Claims[1].Rule = &engine.Rule{Name: "r", Tag: "2m", Per: 1e6} },
		{Prefix: "v"}: func(c *engine.Call) { c.Claims[1].Rule = &engine.Rule{Name: "r", Tag: "1m", Per: 2e6} },
		{Prefix: "w"}: func(c *engine.Call) { c.Claims[1].Rule = &engine.Rule{Name: "r", Tag: "1m", Per: 1e6, Kind: 1} },
		{Prefix: "x"}: func(c *engine.Call) { c.Claims[1].Rule = &engine.Rule{Name: "r", Tag: "1m", Per: 1e6, Slices: 1} },
		{Prefix: "y"}: func(c *engine.Call) { c.Claims[1].Rule = &engine.Rule{Name: "r", Tag: "1m", Per: 1e6, Block: 1} },
		{Prefix: "z"}: func(c *engine.Call) { c.Claims[1].Rule = &engine.Rule{Name: "r", Tag: "1m", Per: 1e6, Lease: 1} },
		{Prefix: "schedule"}: func(c *engine.Call) {
			c.Claims[1].Rule = &engine.Rule{Name: "r", Tag: "1m", Per: 1e6, Schedule: schedule(t, "0 0 0 * * *")}
		},
	} {
		same.Claims = []engine.Claim{{Ask: engine.Ask{Rule: rule, Subject: "a", Limit: 1}}, {Ask: engine.Ask{Rule: rule, Subject: "b", Limit: 1}}}
		other := same.Clone()
		copied := *rule
		if other.Claims[0].Rule = &copied; !equal(same, other) {
			t.Error("a copy differs")
		}
		if change(other); equal(same, other) || equal(other, same) {
			t.Errorf("%+v is like %+v", other, same)
		}
	}
}
