package main

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/benchmarks/internal/redisproc"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// process is a limiter with a connection of its own, as a process of a fleet has it.
type process struct {
	*ratelimit.Limiter
	client *redis.Client
}

func (s *redisServer) process() process {
	client := redis.NewClient(&redis.Options{Addr: s.addr, PoolSize: 1, ReadTimeout: time.Minute})
	return process{ratelimit.New(redisstore.New(client), ratelimit.WithPrefix("fleet")), client}
}

// processes starts n processes that declare rules, and returns them with a function that ends them.
func (s *redisServer) processes(n int, rules ...ratelimit.Rule) (all []process, end func(), err error) {
	end = func() {
		for _, p := range all {
			p.client.Close()
		}
	}
	for range n {
		p := s.process()
		all = append(all, p)
		if err = p.Check(rules...); err != nil {
			break
		}
	}
	return all, end, err
}

// served is what a server has spent on all its clients.
type served struct{ cpu, bytes, commands float64 }

func (s *redisServer) served() (served, error) {
	info, err := s.info()
	n := func(name string) float64 { return redisproc.Parse(info[name]) }
	return served{1e6 * (n("used_cpu_sys") + n("used_cpu_user")), n("total_net_input_bytes") + n("total_net_output_bytes"), n("total_commands_processed")}, err
}

// during returns what the server spends while do runs.
func (s *redisServer) during(do func() error) (served, error) {
	before, err := s.served()
	if err != nil {
		return before, err
	}
	if err := do(); err != nil {
		return before, err
	}
	after, err := s.served()
	return served{after.cpu - before.cpu, after.bytes - before.bytes, after.commands - before.commands}, err
}

// measureFleet measures what the processes of a prefix cost a server while nobody calls, what a change costs, and what settings cost a call.
func measureFleet(server *redisServer, e effort) ([]table, error) {
	idle, err := measureIdle(server, e)
	if err != nil {
		return nil, err
	}
	changes, err := measureChanges(server, e)
	if err != nil {
		return nil, err
	}
	return []table{idle, changes, measureSettings(e)}, server.flush()
}

// measureIdle measures processes that beat once a second.
func measureIdle(server *redisServer, e effort) (table, error) {
	t := table{
		title:  "Processes that make no call, each with a beat every second",
		header: []string{"", "server CPU, % of a core", "microseconds a beat", "bytes a beat", "commands a beat"},
	}
	for _, c := range []struct{ processes, settings int }{{e.fleet / 10, 0}, {e.fleet, 0}, {e.fleet, e.settings}} {
		if err := server.flush(); err != nil {
			return t, err
		}
		all, end, err := server.processes(c.processes, yearly(1))
		if err == nil {
			err = block(all[0], c.settings)
		}
		if err != nil {
			end()
			return t, err
		}
		awaitSettings(all, c.settings)
		time.Sleep(e.settle)
		spent, err := server.during(func() error { time.Sleep(e.idle); return nil })
		end()
		if err != nil {
			return t, err
		}
		beats := float64(c.processes) * e.idle.Seconds()
		t.add(fmt.Sprintf("%s processes, %s settings", grouped(int64(c.processes)), grouped(int64(c.settings))),
			number(spent.cpu/1e4/e.idle.Seconds()), number(spent.cpu/beats), number(spent.bytes/beats), number(spent.commands/beats))
	}
	return t, nil
}

// awaitSettings waits until all processes follow n settings.
func awaitSettings(all []process, n int) {
	for slices.ContainsFunc(all, func(p process) bool { return p.Status().Settings < n }) {
		time.Sleep(time.Millisecond)
	}
}

// block blocks n keys, at most a thousand in one change.
func block(p process, n int) error {
	var all []ratelimit.Request
	for i := range n {
		all = append(all, ratelimit.Request{Rule: ratelimit.Rule{Name: "r"}, Key: fmt.Sprint("+8613800", i)})
	}
	for some := range slices.Chunk(all, 1000) {
		if err := p.Block(ratelimit.WithActor(ctx, "kim", "measured"), 24*time.Hour, some...); err != nil {
			return err
		}
	}
	return nil
}

// measureChanges measures what happens once: a change that all follow, reading all settings, and declaring rules.
func measureChanges(server *redisServer, e effort) (table, error) {
	t := table{
		title:  "Changes, and processes that start",
		header: []string{"", "server CPU, microseconds a process", "bytes a process", "commands a process", "milliseconds until all follow"},
	}
	add := func(name string, n int, do func() error) error {
		began := time.Now()
		spent, err := server.during(do)
		each := float64(n)
		t.add(name, number(spent.cpu/each), number(spent.bytes/each), number(spent.commands/each), number(float64(time.Since(began).Microseconds())/1000))
		return err
	}
	if err := server.flush(); err != nil {
		return t, err
	}
	all, end, err := server.processes(e.fleet, yearly(1))
	defer end()
	if err != nil {
		return t, err
	}
	time.Sleep(e.settle)
	tool := server.process()
	defer tool.client.Close()
	err = add(grouped(int64(e.fleet))+" processes follow a change, and beat meanwhile", e.fleet, func() error {
		limit := int64(5)
		if err := tool.Overrides().Set(ctx, "r", ratelimit.Override{Limit: &limit}); err != nil {
			return err
		}
		awaitSettings(all, 1)
		return nil
	})
	end()
	if err != nil {
		return t, err
	}
	if err := block(tool, e.settings-1); err != nil {
		return t, err
	}
	reader := server.process()
	defer reader.client.Close()
	if err := add(fmt.Sprintf("a process reads %s settings", grouped(int64(e.settings))), 1, func() error { return reader.Ping(ctx) }); err != nil {
		return t, err
	}
	rules := make([]ratelimit.Rule, e.rules)
	for i := range rules {
		rules[i] = ratelimit.Rule{Name: fmt.Sprint("docs.Store.Method", i), Key: "{id}", Limit: 10, Per: time.Minute}
	}
	if err := server.flush(); err != nil {
		return t, err
	}
	for n, which := range []string{"the first", "another one"} {
		err := add(fmt.Sprintf("a process declares %s rules, %s of its build", grouped(int64(e.rules)), which), 1, func() error {
			_, end, err := server.processes(1, rules...)
			defer end()
			for listed := int64(0); err == nil && listed < int64(n+1); { // its second beat writes the rules, and lists it
				time.Sleep(10 * time.Millisecond)
				listed, err = server.client.HLen(ctx, "fleet.seen:{fleet}:processes").Result()
			}
			return err
		})
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// measureSettings measures decisions in this process while settings are in force.
func measureSettings(e effort) table {
	t := table{title: "A decision in process under settings, allowed", header: []string{"", "ns, one hot key", "allocations"}}
	none, others, own := blocking(0), blocking(e.settings-1), blocking(e.settings-1)
	factor := ratelimit.Override{Key: "+8613900", Factor: 2}
	if err := own.Overrides().Set(ratelimit.WithActor(ctx, "kim", "measured"), "r", factor); err != nil {
		panic(err) // a rule can have it, and there is room
	}
	cases := []struct {
		name    string
		limiter *ratelimit.Limiter
		best    testing.BenchmarkResult
	}{
		{name: "no settings", limiter: none}, {name: grouped(int64(e.settings-1)) + " blocks of other keys", limiter: others},
		{name: "the same, and a factor for the key", limiter: own},
	}
	for range e.turns {
		for i := range cases {
			c := &cases[i]
			rules := wrap.NewRules("docs.Store.Get", ratelimit.Rule{Name: "r", Limit: 1e7, Per: 10 * time.Second, Algorithm: ratelimit.TokenBucket})
			limits := rules.On(c.limiter)
			r := testing.Benchmark(func(b *testing.B) {
				b.ReportAllocs()
				for range b.N {
					mustAllow(func(subject string) (bool, error) { return admitted(wrap.Take(ctx, limits, rules, subject)) }, factor.Key)
				}
			})
			if c.best.N == 0 || nanoseconds(r) < nanoseconds(c.best) {
				c.best = r
			}
		}
	}
	for _, c := range cases {
		t.add(c.name, number(nanoseconds(c.best)), fmt.Sprint(c.best.AllocsPerOp()))
	}
	return t
}

// blocking returns a limiter in this process with blocks of n keys.
func blocking(n int) *ratelimit.Limiter {
	l := ratelimit.New(memstore.New())
	if err := block(process{Limiter: l}, n); err != nil {
		panic(err) // there is room
	}
	return l
}
