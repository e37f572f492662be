package main

import (
	"context"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// The parts of the run.
const (
	length = 90 * time.Second
	third  = length / 3 // the rush is in the second third
	outage = 78 * time.Second
)

// play sends the load: 20 clients search, five of them far too often during the rush, and others order, which makes them wait for the
// carrier during the rush. Towards the end Redis stops for four seconds.
func (s *stage) play(ctx context.Context) error {
	if err := s.tune(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	began := time.Now()
	var all sync.WaitGroup
	for n := range byte(20) {
		all.Go(func() {
			s.repeat(ctx, net.IPv4(127, 0, 0, 2+n), "GET", "/products?text=lamp", func() float64 {
				if n < 5 && rush(began) {
					return 6
				}
				return 0.5
			})
		})
	}
	for n := range byte(12) {
		all.Go(func() {
			s.repeat(ctx, net.IPv4(127, 0, 1, 1+n), "POST", "/orders?product=lamp", func() float64 {
				if rush(began) {
					return 0.6
				}
				return 0.2
			})
		})
	}
	time.Sleep(outage)
	err := s.pause(4 * time.Second)
	all.Wait()
	return err
}

func rush(began time.Time) bool { return time.Since(began)/third == 1 }

// tune sets a limit for orders in shadow mode, as one user makes all orders here.
func (s *stage) tune(ctx context.Context) error {
	client := redis.NewClient(&redis.Options{Addr: s.redis})
	defer client.Close()
	overrides := ratelimit.New(redisstore.New(client), ratelimit.WithPrefix("shop")).Overrides()
	return overrides.Set(ctx, "orders", ratelimit.Override{Limit: new(int64(120)), Mode: new(ratelimit.ModeShadow)})
}

// repeat sends requests from an address at random times, at a given average rate per second, until ctx ends.
func (s *stage) repeat(ctx context.Context, from net.IP, method, path string, rate func() float64) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
	client := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Duration(rand.ExpFloat64() / rate() * float64(time.Second))):
		}
		request, err := http.NewRequestWithContext(ctx, method, "http://"+s.shop+path, http.NoBody)
		if err != nil {
			return
		}
		request.Header.Set("Authorization", "Bearer ann")
		if reply, err := client.Do(request); err == nil { // the metrics show failures
			reply.Body.Close()
		}
	}
}
