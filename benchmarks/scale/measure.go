package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"github.com/ratelimit-go/ratelimit/benchmarks/internal/redisproc"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// The kinds of subjects.
const (
	cold   = "cold"             // each call has its own subject
	hot    = "hot"              // all calls have one subject
	leased = "hot, lease=200ms" // all calls have one subject, and processes take permits ahead
)

// load is a series of calls, with the cost of a decision. Times are in microseconds.
type load struct {
	servers  string
	callers  int
	subjects string

	rate           float64 // decisions a second
	reads, scripts float64 // of the servers, for a decision
	server, client float64 // processor time for a decision
}

func measureAll(span time.Duration) ([]load, error) {
	var owner redisproc.Owner
	defer owner.End()
	single := redis.NewClient(&redis.Options{Addr: redistest.Start(&owner).Addr, PoolSize: 64})
	one := redis.NewClusterClient(&redis.ClusterOptions{Addrs: redistest.StartCluster(&owner, 1).Addrs(), PoolSize: 64})
	three := redis.NewClusterClient(&redis.ClusterOptions{Addrs: redistest.StartCluster(&owner, 3).Addrs(), PoolSize: 64})
	defer single.Close()
	defer one.Close()
	defer three.Close()
	loads := []load{
		{servers: "one", callers: 1, subjects: cold},
		{servers: "one", callers: 64, subjects: cold},
		{servers: "cluster of 1", callers: 1, subjects: cold},
		{servers: "cluster of 1", callers: 64, subjects: cold},
		{servers: "cluster of 1", callers: 64, subjects: hot},
		{servers: "cluster of 1", callers: 64, subjects: leased},
		{servers: "cluster of 3", callers: 64, subjects: cold},
		{servers: "cluster of 3", callers: 64, subjects: hot},
		{servers: "cluster of 3", callers: 64, subjects: leased},
	}
	clients := map[string]redis.UniversalClient{"one": single, "cluster of 1": one, "cluster of 3": three}
	for i := range loads {
		if err := loads[i].measure(clients[loads[i].servers], span); err != nil {
			return nil, fmt.Errorf("%s, %d callers, %s: %w", loads[i].servers, loads[i].callers, loads[i].subjects, err)
		}
	}
	return loads, nil
}

var subjects atomic.Int64

// measure makes calls under a token bucket. It does not measure the first second.
func (l *load) measure(client redis.UniversalClient, span time.Duration) error {
	ctx, cancel := context.WithCancel(context.Background()) // can end, like the context of a request
	defer cancel()
	rule := ratelimit.Rule{Name: fmt.Sprint("scale", subjects.Add(1)), Algorithm: ratelimit.TokenBucket, Limit: 10_000_000, Per: time.Second}
	if l.subjects == leased {
		rule.Lease = 200 * time.Millisecond
	}
	limiter := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(10*time.Second)))
	calls := func(span time.Duration) (float64, error) {
		var n atomic.Int64
		callers, ctx := errgroup.WithContext(ctx)
		end := time.Now().Add(span)
		for range l.callers {
			callers.Go(func() error {
				for time.Now().Before(end) {
					key := "hot"
					if l.subjects == cold {
						key = fmt.Sprint(subjects.Add(1) % 100_000)
					}
					d, err := limiter.Allow(ctx, ratelimit.Request{Rule: rule, Key: key})
					if err != nil || !d.Allowed {
						return fmt.Errorf("admitted is %t, error %w", d.Allowed, err)
					}
					n.Add(1)
				}
				return nil
			})
		}
		err := callers.Wait()
		return float64(n.Load()), err
	}
	if _, err := calls(min(span, time.Second)); err != nil {
		return err
	}
	before, err := spentBy(ctx, client)
	if err != nil {
		return err
	}
	used, start := processorTime(), time.Now()
	n, err := calls(span)
	if err != nil {
		return err
	}
	l.rate, l.client = n/time.Since(start).Seconds(), (processorTime()-used)/n
	after, err := spentBy(ctx, client)
	l.reads, l.scripts, l.server = (after.Reads-before.Reads)/n, (after.Scripts-before.Scripts)/n, (after.CPU-before.CPU)/n
	return err
}

// spentBy returns what all servers of a client have spent so far: reads, scripts and time.
func spentBy(ctx context.Context, client redis.UniversalClient) (all redisproc.Spent, err error) {
	cluster, ok := client.(*redis.ClusterClient)
	if !ok {
		return redisproc.SpentBy(ctx, client.(*redis.Client))
	}
	var mu sync.Mutex
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		spent, err := redisproc.SpentBy(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		all.Reads, all.Scripts, all.CPU = all.Reads+spent.Reads, all.Scripts+spent.Scripts, all.CPU+spent.CPU
		return err
	})
	return all, err
}

// processorTime returns the microseconds that this process has used.
func processorTime() float64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1000
}
