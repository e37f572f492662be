//go:build faults

package faults

import (
	"context"
	"strings"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// toxic is what a network does to a connection, and for how long at a time.
type toxic struct {
	what string
	span time.Duration
}

// apply does it once.
func (x toxic) apply(t *testing.T, proxy *toxiproxy.Proxy) {
	added, err := proxy.Toxics.AddToxicJson(strings.NewReader(x.what))
	if err != nil {
		t.Error(err)
		return
	}
	time.Sleep(x.span)
	if err := proxy.Toxics.RemoveToxic(context.Background(), added.Name); err != nil {
		t.Error(err)
	}
}

var toxics = map[string]toxic{
	"slow":              {`{"type":"latency","attributes":{"latency":20,"jitter":20}}`, 200 * time.Millisecond},
	"too slow":          {`{"type":"latency","attributes":{"latency":400}}`, 200 * time.Millisecond},
	"reset at once":     {`{"type":"reset_peer","attributes":{"timeout":0}}`, 200 * time.Millisecond},
	"nothing comes":     {`{"type":"timeout","attributes":{"timeout":0}}`, 200 * time.Millisecond},
	"nothing goes":      {`{"type":"timeout","stream":"upstream","attributes":{"timeout":0}}`, 200 * time.Millisecond},
	"cut in the middle": {`{"type":"limit_data","attributes":{"bytes":2000}}`, 100 * time.Millisecond},
	"in slices":         {`{"type":"slicer","attributes":{"average_size":3,"size_variation":2,"delay":20}}`, 200 * time.Millisecond},
}

// Whatever a network does: nobody gets more than the limit, nobody is refused without reason, and no call is charged twice.
func TestToxics(t *testing.T) {
	for name, toxic := range toxics {
		t.Run(name, func(t *testing.T) {
			server := redistest.Start(t)
			proxy := startProxy(t, server.Addr)
			limiter := ratelimit.New(redisstore.New(connect(t, proxy.Listen)), quiet())
			var b Book
			stop := again(200*time.Millisecond, func() { toxic.apply(t, proxy) })
			press(&b, limiter, 8*time.Second, append(rules(), sums()...), false)
			stop()
			waitUntilWell(t, limiter)
			report(t, &b)
			audit(t, &b, rules())
			requireSums(t, &b, ratelimit.New(redisstore.New(connect(t, server.Addr)), quiet()), sums(), nil)
		})
	}
}

func startProxy(t *testing.T, upstream string) *toxiproxy.Proxy {
	proxy := toxiproxy.NewProxy(toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop()), "redis", "127.0.0.1:0", upstream)
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	return proxy
}

// A node of a cluster that is gone fails the calls for its own slots alone.
func TestPartialOutage(t *testing.T) {
	masters := redistest.StartCluster(t, 3, "--cluster-require-full-coverage", "no")
	limiter := ratelimit.New(redisstore.New(connectCluster(t, masters)), quiet())
	var b Book
	pressMany(&b, limiter, time.Second)
	masters[0].Stop()
	pressMany(&b, limiter, 8*time.Second)
	report(t, &b)
	slots := map[string]int{}
	for _, e := range b.Entries() {
		if _, known := slots[e.Key]; !known {
			slots[e.Key] = slotOf(masters[1], e.Key)
		}
		if slot := slots[e.Key]; slot >= 16384/3+1 && e.Outcome == Unknown {
			t.Fatalf("a call for slot %d of another node failed: %v", slot, e.Err)
		}
	}
}
