package main

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"golang.org/x/sync/errgroup"
)

// load is calls of several callers over the loopback interface. Client and server share the machine's cores.
type load struct {
	callers int
	rate    float64 // calls a second of a caller; 0 means as many as it can make
	span    time.Duration
	refused bool // all calls are refused; otherwise all are admitted
}

// spending is what the calls of a load took.
type spending struct {
	rate float64 // calls a second
	wait float64 // microseconds that a caller waited for a call
	cost cost    // of a call, for the server
}

// run makes the calls, for 512 subjects.
func (l load) run(server *redisServer, d decide) (s spending, err error) {
	names := make([]string, 512)
	for i := range names {
		names[i] = newSubject()
	}
	var n, waited atomic.Int64
	var took time.Duration
	s.cost, err = server.during(func() (int, error) {
		start := time.Now()
		callers, running := errgroup.WithContext(ctx)
		for caller := range l.callers {
			callers.Go(func() error {
				const batch = 10 // calls, so that reading the clock takes little of the time
				for i := 0; time.Since(start) < l.span && running.Err() == nil; {
					if l.rate > 0 && float64(i) > l.rate*time.Since(start).Seconds() {
						time.Sleep(100 * time.Microsecond)
						continue
					}
					began := time.Now()
					for range batch {
						if err := d.expect(!l.refused, names[(caller*len(names)/l.callers+i)%len(names)]); err != nil {
							return err
						}
						i++
					}
					waited.Add(int64(time.Since(began)))
					n.Add(batch)
				}
				return nil
			})
		}
		err := callers.Wait()
		took = time.Since(start)
		return int(n.Load()), err
	})
	s.rate, s.wait = float64(n.Load())/took.Seconds(), float64(waited.Load())/1000/float64(n.Load())
	return s, err
}

// loadTable is a section of loads. All its cases are of one kind.
type loadTable struct {
	section
	load
	figures  func(spending) []float64 // one for each column
	limiters []named
}

func loadSections(server *redisServer, e effort) (list []section) {
	for _, t := range loadTables(server, e) {
		for _, l := range t.limiters {
			t.cases = append(t.cases, benchmark{l.name, func() ([]float64, error) {
				s, err := t.run(server, l.decide)
				return t.figures(s), err
			}})
		}
		list = append(list, t.section)
	}
	return list
}

func loadTables(server *redisServer, e effort) []loadTable {
	token, leased := bucket(plenty, time.Second), bucket(plenty, time.Second)
	leased.Lease = 200 * time.Millisecond
	byCallers := loadTable{
		section: section{names: "against redis_rate", rounds: e.turns, columns: []column{
			{"decisions a second", most, number, true}, {"us a caller waits", least, number, true}, {"server CPU us each", least, number, true},
		}},
		load:    load{callers: many, span: e.turn},
		figures: func(s spending) []float64 { return []float64{s.rate, s.wait, s.cost.cpu} },
		limiters: []named{
			{redisRateOne, redisRate(server.pool, redis_rate.PerMinute(plenty))},
			{both, ours(onRedis(server.pool), sliding(1000, time.Second), yearly(1e15))},
			{"ours: token-bucket", ours(onRedis(server.pool), token)},
		},
	}
	alone := byCallers
	alone.title, byCallers.title = "One caller, over the loopback interface", fmt.Sprintf("%d callers, 512 subjects, over the loopback interface", many)
	alone.callers, alone.server = 1, server // on one core, because each waits while the other works
	refused := loadTable{
		section: section{title: fmt.Sprintf("One subject that is refused, asked for by %d callers", many), rounds: e.repeat, columns: []column{
			{"refusals a second", most, number, false}, {"scripts a second", least, number, false}, {"ns of one processor each, at most", least, number, false},
		}},
		load: load{callers: many, span: e.long, refused: true},
		figures: func(s spending) []float64 {
			return []float64{s.rate, s.rate * s.cost.scripts, 1e9 * float64(runtime.GOMAXPROCS(0)) / s.rate}
		},
		limiters: []named{
			{redisRateOne, usedUp(redisRate(server.pool, redis_rate.Limit{Rate: 1, Burst: 1, Period: long}))},
			{both, usedUp(ours(onRedis(server.pool), sliding(10, long), yearly(1e15)))},
		},
	}
	lease := loadTable{ // leases grow in the first second, which is none of the best
		section: section{title: "One subject at up to 100,000 calls a second", names: "one caller", rounds: e.repeat, columns: []column{
			{"calls a second", most, number, false}, {"scripts a call", least, func(x float64) string { return fmt.Sprintf("%.5f", x) }, false},
			{"ns a call", least, number, false},
		}},
		load:    load{callers: 1, span: e.long, rate: 100_000},
		figures: func(s spending) []float64 { return []float64{s.rate, s.cost.scripts, 1000 * s.wait} },
		limiters: []named{
			{"token-bucket", always(ours(onRedis(server.pool), token))},
			{"token-bucket, lease=200ms", always(ours(onRedis(server.pool), leased))},
		},
	}
	return []loadTable{alone, byCallers, refused, lease}
}

// always decides all calls for one subject.
func always(d decide) decide {
	subject := newSubject()
	return func(string) (bool, error) { return d(subject) }
}

// usedUp decides all calls for one subject that has no permits left.
func usedUp(d decide) decide {
	d = always(d)
	if err := useUp(d, ""); err != nil {
		return failing(err)
	}
	return d
}
