package main

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ratelimit-go/ratelimit/benchmarks/internal/redisproc"
	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

const (
	writers     = 8  // programs that block keys at the same time
	eachBlocks  = 40 // keys, each in a change of its own
	patientUpTo = time.Second
)

// measureWriting measures programs that block keys while others do, and how long it takes until the first settings are in force everywhere.
func measureWriting(server *redisServer, e effort) ([]table, error) {
	t := table{
		title:  "Programs that block keys",
		header: []string{"", "milliseconds until it is done", "failed at a deadline of a second", "longest command, microseconds"},
	}
	for _, present := range []int{0, e.settings * 9 / 10} {
		for how, atOnce := range map[string]int{"one after the other": 1, "at once": eachBlocks} {
			if err := measureBlocks(server, &t, present, atOnce, how); err != nil {
				return nil, err
			}
		}
	}
	return []table{t}, measureFirst(server, e, &t)
}

func measureBlocks(server *redisServer, t *table, present, atOnce int, how string) error {
	all, end, err := server.blockers(writers, present)
	defer end()
	if err != nil {
		return err
	}
	longest, began, failed := server.longest(), time.Now(), atomic.Int64{}
	var programs sync.WaitGroup
	for i, p := range all {
		for j := range atOnce {
			programs.Go(func() {
				for k := j; k < eachBlocks; k += atOnce {
					ctx, cancel := context.WithTimeout(ratelimit.WithActor(ctx, "kim", "measured"), patientUpTo)
					if p.Block(ctx, time.Hour, ratelimit.Request{Rule: ratelimit.Rule{Name: "r"}, Key: fmt.Sprint("eve", i, "-", k)}) != nil {
						failed.Add(1)
					}
					cancel()
				}
			})
		}
	}
	programs.Wait()
	took := time.Since(began)
	t.add(fmt.Sprintf("%d blocks by %d programs, %s in each, %s settings present", writers*eachBlocks, writers, how, grouped(int64(present))),
		number(float64(took.Microseconds())/1000), grouped(failed.Load()), longest())
	return nil
}

// measureFirst measures a block of many keys when nothing was ever set.
func measureFirst(server *redisServer, e effort, t *table) error {
	all, end, err := server.blockers(writers, 0)
	defer end()
	if err != nil {
		return err
	}
	requests := make([]ratelimit.Request, e.settings)
	for i := range requests {
		requests[i] = ratelimit.Request{Rule: ratelimit.Rule{Name: "r"}, Key: fmt.Sprint("eve", i)}
	}
	longest, began := server.longest(), time.Now()
	if err := all[0].Block(ratelimit.WithActor(ctx, "kim", "measured"), time.Hour, requests...); err != nil {
		return err
	}
	written := time.Since(began)
	awaitSettings(all, e.settings)
	t.add(fmt.Sprintf("the first %s blocks, in one change: written", grouped(int64(e.settings))), number(float64(written.Microseconds())/1000), "0", "")
	t.add(fmt.Sprintf("the same: in force in all %d programs", writers), number(float64(time.Since(began).Microseconds())/1000), "0", longest())
	return nil
}

// blockers returns programs that follow settings, of which a number are present, and a function that ends them.
func (s *redisServer) blockers(n, present int) ([]process, func(), error) {
	if err := s.flush(); err != nil {
		return nil, func() {}, err
	}
	all, end, err := s.processes(n, yearly(1))
	if err == nil {
		err = block(all[0], present)
	}
	if err == nil {
		awaitSettings(all, present)
		time.Sleep(2 * time.Second)
	}
	return all, end, err
}

// longest returns a function that says which command took longest on the server meanwhile.
func (s *redisServer) longest() func() string {
	s.client.ConfigSet(ctx, "latency-tracking-info-percentiles", "100")
	s.client.ConfigResetStat(ctx)
	return func() string {
		text, _ := s.client.Info(ctx, "latencystats").Result()
		name, most := "", 0.0
		for field, value := range redisinfo.Fields(text) {
			command := strings.TrimPrefix(field, "latency_percentiles_usec_")
			if x := redisproc.Parse(strings.TrimPrefix(value, "p100=")); x > most && !strings.HasPrefix(command, "config|") {
				name, most = command, x
			}
		}
		return name + " " + number(most)
	}
}
