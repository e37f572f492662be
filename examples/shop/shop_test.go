package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ratelimit-go/ratelimit/contrib/grpclimit"
	"github.com/ratelimit-go/ratelimit/contrib/promlimit"
	"github.com/ratelimit-go/ratelimit/examples/shop/shoppb"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

// asAnn returns a context with a user and a client address, as the handlers make it.
func asAnn(t *testing.T) context.Context {
	return ratelimit.WithUserID(ratelimit.WithClientIP(t.Context(), "203.0.113.9"), "ann")
}

func TestOrders(t *testing.T) {
	limiter, clock := limittest.New(t)
	limited := NewLimitedShop(&shop{products: []Product{{"lamp", 4900}}, carrier: flatRate(100)}, limiter)
	order := func(product string) error {
		_, err := limited.Order(asAnn(t), product)
		return err
	}
	for range 5 {
		if err := order("unicorn"); err != errUnknownProduct { // refund=error: these do not count
			t.Fatal(err)
		}
	}
	if n := limittest.Exhaust(t, func() error { return order("lamp") }); n != 2 {
		t.Errorf("%d orders passed; expected 2", n)
	}
	limittest.RequireRefused(t, order("lamp"), "orders")
	clock.Advance(time.Minute)
	limittest.RequireAllowed(t, order("lamp"))
}

func TestCarrierIsWaitedFor(t *testing.T) {
	limiter, clock := limittest.New(t)
	carrier := NewLimitedCarrier(flatRate(100), limiter)
	ship := func() error {
		_, err := carrier.Shipping(t.Context(), "lamp")
		return err
	}
	limittest.RequireAllowed(t, ship())
	done := make(chan error)
	for n := range 10 { // two seconds of turns, at five a second
		go func() { done <- ship() }()
		clock.AwaitSleepers(n + 1)
	}
	limittest.RequireRefused(t, ship(), "carrier")
	clock.Advance(2 * time.Second)
	for range 10 {
		limittest.RequireAllowed(t, <-done)
	}
}

// web sends requests to a service that runs in the test.
type web struct {
	*testing.T
	handler http.Handler
}

func (w web) want(method, path, user string, code int, left string) {
	w.Helper()
	r, reply := httptest.NewRequest(method, path, http.NoBody), httptest.NewRecorder()
	r.Header.Set("Authorization", "Bearer "+user)
	w.handler.ServeHTTP(reply, r)
	if got := reply.Result().Header.Get("RateLimit"); reply.Code != code || got != left {
		w.Errorf("%s %s: got %d, RateLimit %s; expected %d, %s", method, path, reply.Code, got, code, left)
	}
}

func TestHTTP(t *testing.T) {
	limiter, _ := limittest.New(t)
	w := web{t, newApp(limiter, promlimit.New()).web}
	w.want("GET", "/products?text=lamp", "", 200, `"search";r=4;t=1, "client";r=99;t=60`)
	w.want("POST", "/orders?product=lamp", "nobody", 401, "")
	w.want("POST", "/orders?product=unicorn", "ann", 404, `"orders";r=1;t=60, "client";r=98;t=60`)
	w.want("POST", "/orders?product=lamp", "ann", 200, `"orders";r=1;t=60, "client";r=97;t=60`)
	for range 4 {
		w.want("GET", "/readyz", "", 200, "")
	}
	w.want("GET", "/limits/rules", "", 200, "")
	w.want("POST", "/limits/change", "", 404, "") // nobody may write
}

// busy is a carrier whose limit is used up.
type busy struct{}

func (busy) Shipping(context.Context, string) (int64, error) { return 0, ratelimit.ErrTooManyRequests }

// A refusal of the carrier's limit is not the customer's fault.
func TestCarrierIsBusy(t *testing.T) {
	limiter, _ := limittest.New(t)
	busyShop := NewLimitedShop(&shop{products: []Product{{"lamp", 4900}}, carrier: busy{}}, limiter)
	w := web{t, newHandler(busyShop, users{"ann": "ann"}, httplimit.ClientIP())}
	w.want("POST", "/orders?product=lamp", "ann", 503, `"orders";r=1;t=60, "client";r=99;t=60`)
}

func TestOutage(t *testing.T) {
	store := limittest.NewOutage(limittest.NewClock())
	w := web{t, newApp(ratelimit.New(store), promlimit.New()).web}
	store.Begin(nil)
	w.want("GET", "/readyz", "", 200, "") // policies decide
	w.want("GET", "/products", "", 503, "")
	store.End()
	w.want("GET", "/products", "", 200, `"search";r=4;t=1, "client";r=99;t=60`)
}

// dial serves the app's gRPC and returns a client.
func dial(t *testing.T, a *app) shoppb.ShopClient {
	t.Helper()
	listener := listen(t)
	go a.rpc.Serve(listener)
	t.Cleanup(a.rpc.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(grpclimit.UnaryClientInterceptor()), grpc.WithStreamInterceptor(grpclimit.StreamClientInterceptor()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return shoppb.NewShopClient(conn)
}

// HTTP and gRPC share one budget, and a refusal arrives as the same typed error.
func TestGRPC(t *testing.T) {
	limiter, clock := limittest.New(t)
	a := newApp(limiter, promlimit.New())
	client := dial(t, a)
	ann := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer ann")
	search := func() error {
		stream, err := client.Search(ann, &shoppb.SearchRequest{Text: "lamp"})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	order := func(product string) error {
		_, err := client.Order(ann, &shoppb.OrderRequest{Product: product}, grpc.WaitForReady(true))
		return err
	}
	if code := status.Code(order("unicorn")); code != codes.NotFound {
		t.Errorf("got %s", code)
	}
	limittest.RequireAllowed(t, order("lamp"))
	clock.Advance(time.Second) // the carrier's turn
	web{t, a.web}.want("POST", "/orders?product=lamp", "ann", 200, `"orders";r=0;t=59, "client";r=99;t=60`)
	if refusal := limittest.RequireRefused(t, order("lamp"), "orders"); refusal.RetryAfter != 59*time.Second {
		t.Errorf("got %v", refusal.RetryAfter)
	}
	if n := limittest.Exhaust(t, search); n != 5 {
		t.Errorf("%d searches passed; expected 5", n)
	}
	_, err := client.Order(t.Context(), &shoppb.OrderRequest{Product: "lamp"})
	if code := status.Code(err); code != codes.Unauthenticated {
		t.Errorf("got %v", err)
	}
}

func TestMetrics(t *testing.T) {
	metrics := promlimit.New()
	limiter, _ := limittest.New(t, ratelimit.WithObserver(metrics.Observe))
	w := web{t, newApp(limiter, metrics).web}
	w.want("GET", "/products", "", 200, `"search";r=4;t=1, "client";r=99;t=60`)
	reply := httptest.NewRecorder()
	w.handler.ServeHTTP(reply, httptest.NewRequest("GET", "/metrics", http.NoBody))
	const line = `ratelimit_decisions_total{outcome="admitted",rule="search",source="store"} 1`
	if !strings.Contains(reply.Body.String(), line) {
		t.Errorf("got\n%s", reply.Body)
	}
}
