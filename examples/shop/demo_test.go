package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/contrib/promlimit"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

// The demonstration tells the same story in this process and on Redis.
func TestDemo(t *testing.T) {
	for name, url := range map[string]string{"memory": "", "redis": "redis://" + redistest.Start(t).Addr + "?read_timeout=1m"} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := run(t.Context(), &out, config{web: "127.0.0.1:0", rpc: "127.0.0.1:0", redis: url, prefix: "shop", demo: true}); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{
				"/readyz                200 OK\n", `200 OK  RateLimit: "search";r=4;t=1, "client";r=99;t=60`, `"violated-policies":["search"]`,
				"Order lamp             5490 cents", "Order table+lamp       8490 cents", "Order chair            refused: Two orders a minute.",
				`"violated-policies":["orders"]`, `ratelimit_decisions_total{outcome="refused",rule="orders",source="store"} 2`,
			} {
				if !strings.Contains(out.String(), want) {
					t.Errorf("expected %s in\n%s", want, &out)
				}
			}
		})
	}
}

func TestServeEnds(t *testing.T) {
	web, rpc := listen(t), listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	limiter, _ := limittest.New(t)
	go func() { ended <- newApp(limiter, promlimit.New()).serve(ctx, web, rpc) }()
	reply, err := http.Get("http://" + web.Addr().String() + "/readyz")
	if err != nil || reply.StatusCode != http.StatusOK {
		t.Errorf("got %+v, %v", reply, err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	return listener
}

func TestWrongConfig(t *testing.T) {
	for want, c := range map[string]config{
		"REDIS_URL":              {redis: "localhost"},
		"address already in use": {web: listen(t).Addr().String()},
	} {
		if err := run(t.Context(), nil, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v; expected %s", err, want)
		}
	}
}
