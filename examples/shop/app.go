package main

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/console"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// app is the whole service.
type app struct {
	web http.Handler
	rpc *grpc.Server
}

// newApp wires the shop. All parts share one limiter.
func newApp(limiter *ratelimit.Limiter, metrics prometheus.Collector) *app {
	u := users{"ann": "ann", "bob": "bob"}
	clients := httplimit.ClientIP() // behind proxies: ClientIP(their prefixes)
	limited := NewLimitedShop(&shop{
		products: []Product{{"lamp", 4900}, {"chair", 12900}, {"table lamp", 7900}},
		carrier:  NewLimitedCarrier(flatRate(590), limiter),
	}, limiter)

	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics)
	mux := http.NewServeMux()
	mux.Handle("/", newHandler(limited, u, clients))
	mux.Handle("/limits/", http.StripPrefix("/limits", console.New(limiter))) // read-only; a real shop mounts it behind a login
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	// Ready since Ping has passed at the start. While the store fails, policies decide; without its programs a balancer could serve nobody.
	mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
	return &app{web: mux, rpc: newServer(limited, u, clients)}
}

// drain is how long calls may take that run when the service ends.
const drain = 5 * time.Second

// serve serves HTTP and gRPC until ctx ends. Then it finishes the calls that run.
func (a *app) serve(ctx context.Context, web, rpc net.Listener) error {
	server := &http.Server{Handler: a.web, ReadHeaderTimeout: 5 * time.Second}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Serve(web) })
	group.Go(func() error { return a.rpc.Serve(rpc) })
	group.Go(func() error {
		<-ctx.Done()
		late := time.AfterFunc(drain, a.rpc.Stop)
		defer late.Stop()
		a.rpc.GracefulStop()
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), drain)
		defer cancel()
		return server.Shutdown(ctx)
	})
	if err := group.Wait(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
