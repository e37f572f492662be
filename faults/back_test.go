package faults

import (
	"context"
	"flag"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

var (
	outages = flag.Int("outages", 1, "how many outages of each kind TestBack makes; of those in a row, six times as many")
	outage  = flag.Duration("outage", 50*time.Millisecond, "how long the shortest outage of TestBack lasts")
)

// After an outage, decisions go on. The test logs how long after the server's first PONG the first call was admitted. The limiter has a client of
// its own. To measure outages of 1, 4 and 10 s, and six of 1 s in a row: go test -run='^TestBack$' -v -count=1 . -outage=1s -outages=10
func TestBack(t *testing.T) {
	for _, callers := range []int{1, 16} {
		for _, length := range []time.Duration{*outage, 4 * *outage, 10 * *outage} {
			var took []time.Duration
			for range *outages {
				took = append(took, outagesOf(t, callers, length, 1)...)
			}
			logBack(t, callers, length, took)
		}
		var took []time.Duration
		for range *outages {
			took = append(took, outagesOf(t, callers, *outage, 6)...)
		}
		t.Log("six in a row:")
		logBack(t, callers, *outage, took)
	}
}

func logBack(t *testing.T, callers int, length time.Duration, took []time.Duration) {
	slices.Sort(took)
	t.Logf("%2d callers, %3d outages of %v: median %v, worst %v", callers, len(took), length, took[len(took)/2], took[len(took)-1])
}

// outagesOf stops a server n times while callers call every millisecond. It returns how long after each first PONG a call was admitted.
func outagesOf(t *testing.T, callers int, length time.Duration, n int) (took []time.Duration) {
	server := redistest.Start(t)
	defer server.Stop()
	limiter := ratelimit.New(redisstore.New(connect(t, server.Addr), redisstore.WithRefusalMemory(0)), quiet())
	for range n {
		waitUntilWell(t, limiter)
		server.Stop()
		admitted, over := new(atomic.Int64), make(chan struct{}) // when a call was admitted first, in nanoseconds
		var crowd sync.WaitGroup
		for range callers {
			crowd.Go(func() {
				for admitted.Load() == 0 {
					_, err := limiter.Allow(context.Background(), ratelimit.Request{Rule: ratelimit.PerHour(1_000_000), Key: "back"})
					if err == nil {
						admitted.CompareAndSwap(0, time.Now().UnixNano())
					}
					time.Sleep(time.Millisecond)
				}
			})
		}
		time.Sleep(length)
		var pong time.Time
		go func() {
			defer close(over)
			pong = firstPong(server.Addr)
		}()
		server.Restart()
		crowd.Wait()
		<-over
		took = append(took, max(0, time.Unix(0, admitted.Load()).Sub(pong)).Round(100*time.Microsecond))
	}
	return took
}

// firstPong returns when a server first answers PING.
func firstPong(addr string) time.Time {
	for reply := make([]byte, 5); ; time.Sleep(200 * time.Microsecond) {
		connection, err := net.Dial("tcp", addr)
		if err != nil {
			continue
		}
		_, _ = connection.Write([]byte("PING\r\n"))
		_, _ = connection.Read(reply)
		_ = connection.Close()
		if strings.HasPrefix(string(reply), "+PONG") {
			return time.Now()
		}
	}
}
