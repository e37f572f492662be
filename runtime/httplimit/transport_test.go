package httplimit

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// far is a far side that gives one answer.
type far struct {
	status     int
	retryAfter string
	fields     http.Header // besides
	seen       int
	closed     int // how often its idle connections
}

func (f *far) CloseIdleConnections() { f.closed++ }

func (f *far) RoundTrip(*http.Request) (*http.Response, error) {
	f.seen++
	header := http.Header{}
	maps.Copy(header, f.fields)
	if f.retryAfter != "" {
		header.Set("Retry-After", f.retryAfter)
	}
	return &http.Response{StatusCode: f.status, Header: header, Body: http.NoBody}, nil
}

var api = []ratelimit.Rule{{Name: "api", Limit: 100, Per: time.Second, Wait: time.Minute}}

func get(t *testing.T, transport http.RoundTripper) (int, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://far.example/", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
}

// An answer of 429 with Retry-After holds the next request until then.
func TestTransportPauses(t *testing.T) {
	limiter, clock := limittest.New(t)
	side := &far{status: 429, retryAfter: "2"}
	transport := Transport(limiter, nil, api, side)
	if code, err := get(t, transport); code != 429 || err != nil {
		t.Fatalf("got %d, %v", code, err)
	}
	side.status = 200
	done := make(chan error)
	go func() {
		_, err := get(t, transport)
		done <- err
	}()
	clock.AwaitSleepers(1)
	clock.Advance(1900 * time.Millisecond)
	clock.AwaitSleepers(1)
	if side.seen != 1 {
		t.Fatalf("the far side saw %d requests during the pause", side.seen)
	}
	clock.Advance(200 * time.Millisecond)
	if err := <-done; err != nil || side.seen != 2 {
		t.Errorf("after the pause: %v, %d requests", err, side.seen)
	}
}

// A pause of one client holds the others on the same store. A request that may not wait so long is refused, and its body is closed.
func TestTransportPausesOthers(t *testing.T) {
	server := redistest.Start(t)
	open := func() *ratelimit.Limiter {
		client := redis.NewClient(&redis.Options{Addr: server.Addr})
		t.Cleanup(func() { _ = client.Close() })
		return ratelimit.New(redisstore.New(client, redisstore.WithTimeout(time.Minute)))
	}
	hasty := []ratelimit.Rule{api[0]}
	hasty[0].Wait = 0
	one, side := Transport(open(), nil, hasty, &far{status: 503, retryAfter: "3600"}), &far{status: 200}
	if _, err := get(t, one); err != nil {
		t.Fatal(err)
	}
	body := &closed{Reader: strings.NewReader("x")}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://far.example/", body)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Transport(open(), nil, hasty, side).RoundTrip(r)
	refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
	if !ok || refusal.RetryAfter < time.Minute || side.seen != 0 || !body.isClosed {
		t.Errorf("got %v, %d requests, body closed: %t", err, side.seen, body.isClosed)
	}
}

type closed struct {
	io.Reader
	isClosed bool
}

func (c *closed) Close() error { c.isClosed = true; return nil }

// A request whose context ends while it waits is not sent. Its body is closed, and its place goes to others.
func TestTransportOfAContextThatEnds(t *testing.T) {
	limiter, clock := limittest.New(t)
	rules := []ratelimit.Rule{{Name: "api", Limit: 1, Per: time.Hour, Wait: 2 * time.Hour}}
	side := &far{status: 200}
	transport := Transport(limiter, nil, rules, side)
	if _, err := get(t, transport); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	body := &closed{Reader: strings.NewReader("x")}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://far.example/", body)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := transport.RoundTrip(r)
		done <- err
	}()
	clock.AwaitSleepers(1)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || side.seen != 1 || !body.isClosed {
		t.Errorf("got %v, %d requests, body closed: %t", err, side.seen, body.isClosed)
	}
	clock.Advance(time.Hour)
	if _, err := get(t, transport); err != nil || side.seen != 2 {
		t.Errorf("after an hour: %v, %d requests", err, side.seen)
	}
}

// Only a status of 400 and more with a Retry-After that can be read pauses.
func TestTransportGoesOn(t *testing.T) {
	for _, side := range []*far{
		{status: 429}, {status: 503}, {status: 200, retryAfter: "60"}, {status: 302, retryAfter: "60"}, {status: 429, retryAfter: "soon"},
		{status: 429, retryAfter: "-5"}, {status: 429, retryAfter: "0"}, {status: 429, retryAfter: "Mon, 02 Jan 2006 15:04:05 GMT"},
	} {
		transport := Transport(ratelimit.New(memstore.New()), nil, api, side)
		for range 2 {
			if code, err := get(t, transport); code != side.status || err != nil {
				t.Errorf("%+v: got %d, %v", side, code, err)
			}
		}
	}
}

// left returns the fields of a far side of which nothing is left for 40 seconds.
func left(name, value string) http.Header {
	h := http.Header{}
	h.Set("RateLimit", `"ann";r=0;t=40`)
	h.Set(name, value)
	return h
}

// With WithRemaining a response that says that nothing is left pauses the key before the first 429. Without it, or from a cache
// (draft-ietf-httpapi-ratelimit-headers-11, section 7.3), it does not. A pause that ends later stays.
func TestWithRemaining(t *testing.T) {
	hasty := []ratelimit.Rule{api[0]}
	hasty[0].Wait = 0
	for _, c := range []struct {
		options []TransportOption
		sides   []*far
		want    time.Duration
	}{
		{nil, []*far{{status: 200, fields: left("X", "")}}, 0},
		{[]TransportOption{WithRemaining()}, []*far{{status: 200, fields: left("X", "")}}, 40 * time.Second},
		{[]TransportOption{WithRemaining()}, []*far{{status: 403, fields: left("X", "")}}, 40 * time.Second},
		{[]TransportOption{WithRemaining()}, []*far{{status: 200, fields: left("Age", "5")}}, 0},
		{[]TransportOption{WithRemaining()}, []*far{{status: 200, fields: left("RateLimit", `"x";r=1;t=40`)}}, 0},
		{[]TransportOption{WithRemaining()}, []*far{{status: 200, fields: left("RateLimit", `"x";r=0;t=999999`)}}, 24 * time.Hour},
		{nil, []*far{{status: 429, fields: left("X", "")}}, 40 * time.Second},
		{nil, []*far{{status: 529, retryAfter: "30"}}, 30 * time.Second},
	} {
		limiter, _ := limittest.New(t)
		if _, err := get(t, Transport(limiter, nil, hasty, c.sides[0], c.options...)); err != nil {
			t.Fatal(err)
		}
		_, err := get(t, Transport(limiter, nil, hasty, &far{status: 200}, c.options...))
		refusal, _ := errors.AsType[*ratelimit.TooManyRequestsError](err)
		if (err != nil) != (c.want > 0) || refusal != nil && refusal.RetryAfter != c.want {
			t.Errorf("%+v: got %v, want a pause of %s", c.sides[0], err, c.want)
		}
	}
}

// Of concurrent responses that ask for a pause the latest end holds.
func TestLaterEndHolds(t *testing.T) {
	limiter, _ := limittest.New(t)
	hasty := []ratelimit.Rule{api[0]}
	hasty[0].Wait = 0
	side := &answers{begun: make(chan chan string)}
	transport, ended := Transport(limiter, nil, hasty, side, WithRemaining()), make(chan struct{})
	all := make([]chan string, 3)
	for i := range all {
		go func() { _, _ = get(t, transport); ended <- struct{}{} }()
		all[i] = <-side.begun
	}
	for i, seconds := range []string{"20", "40", "10"} {
		all[i] <- seconds
		<-ended
	}
	_, err := get(t, transport)
	if refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); !ok || refusal.RetryAfter != 40*time.Second {
		t.Errorf("got %v", err)
	}
}

// answers is a far side whose answers a test gives.
type answers struct{ begun chan chan string }

func (a *answers) RoundTrip(*http.Request) (*http.Response, error) {
	seconds := make(chan string)
	a.begun <- seconds
	header := http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {<-seconds}}
	return &http.Response{StatusCode: 200, Header: header, Body: http.NoBody}, nil
}

// A Retry-After that is a date counts by the clock of the far side, and so does a time in its other fields.
func TestDateOfTheFarSide(t *testing.T) {
	for _, apart := range []time.Duration{-10 * time.Minute, 0, 10 * time.Minute} {
		there := time.Now().Add(apart).UTC()
		side := &far{status: 429, retryAfter: there.Add(30 * time.Second).Format(http.TimeFormat), fields: http.Header{"Date": {there.Format(http.TimeFormat)}}}
		limiter, _ := limittest.New(t)
		hasty := []ratelimit.Rule{api[0]}
		hasty[0].Wait = 0
		transport := Transport(limiter, nil, hasty, side)
		if _, err := get(t, transport); err != nil {
			t.Fatal(err)
		}
		_, err := get(t, transport)
		if refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); !ok || refusal.RetryAfter != 30*time.Second {
			t.Errorf("the clock of the far side is %s apart: got %v", apart, err)
		}
	}
}

// CloseIdleConnections of http.Client reaches the RoundTripper below.
func TestCloseIdleConnections(t *testing.T) {
	side := &far{}
	client := http.Client{Transport: Transport(ratelimit.New(memstore.New()), nil, api, side)}
	if client.CloseIdleConnections(); side.closed != 1 {
		t.Errorf("closed %d times", side.closed)
	}
	Transport(ratelimit.New(memstore.New()), nil, api, &answers{}).(interface{ CloseIdleConnections() }).CloseIdleConnections() // which has none
}

// A field that cannot be read is logged once, without its value if the limiter hashes.
func TestUnreadableIsSaidOnce(t *testing.T) {
	log := new(redistest.Log)
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	plain := ratelimit.New(memstore.New())
	hashing := ratelimit.New(memstore.New(), ratelimit.WithSubjectHash([]byte("0123456789abcdef0123456789abcdef")))
	for _, limiter := range []*ratelimit.Limiter{plain, hashing} {
		transport := Transport(limiter, nil, api, &far{status: 429, retryAfter: "soon"})
		for range 3 {
			if _, err := get(t, transport); err != nil {
				t.Fatal(err)
			}
		}
	}
	if text := log.String(); strings.Count(text, "could not be read") != 2 || strings.Count(text, "field=Retry-After value=soon") != 1 ||
		strings.Count(text, "soon") != 1 {
		t.Errorf("logged %s", text)
	}
}

// A request that could not be sent has its permit back.
func TestTransportOfALostServer(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + listener.Addr().String()
	_ = listener.Close()
	limiter := ratelimit.New(memstore.New())
	rules := []ratelimit.Rule{{Name: "api", Limit: 1, Per: time.Hour}}
	client := &http.Client{Transport: Transport(limiter, nil, rules, &http.Transport{})}
	for range 3 {
		response, err := client.Get(url)
		if err == nil {
			_ = response.Body.Close()
		}
		if err == nil || errors.Is(err, ratelimit.ErrTooManyRequests) {
			t.Fatalf("got %v; expected that the connection is refused", err)
		}
	}
}

// A key that cannot be found, and a rule that does not suit, are told at once.
func TestTransportIsMisused(t *testing.T) {
	limiter := ratelimit.New(memstore.New())
	_, err := get(t, Transport(limiter, func(*http.Request) (string, error) { return "", nil }, api, &far{status: 200}))
	if _, ok := errors.AsType[*ratelimit.KeyError](err); !ok {
		t.Errorf("got %v", err)
	}
	for text, rules := range map[string][]ratelimit.Rule{
		"there is no rule":      nil,
		"has Computed":          {{Name: "c", Computed: true, Per: time.Minute}},
		"has Every":             {{Name: "e", Limit: 1, Every: "1mo"}},
		"has Distinct":          {{Name: "d", Limit: 1, Per: time.Minute, Distinct: "{x}"}},
		"counts calls that run": {{Name: "c", Limit: 1, Algorithm: ratelimit.Concurrency}},
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, text) {
					t.Errorf("%s: %q", text, said)
				}
			}()
			Transport(limiter, nil, rules, nil)
		}()
	}
}

// While Redis is away, each process keeps the pauses of the calls that it counts itself, and the log does not say so for each response.
func TestPauseInAnOutage(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1})
	t.Cleanup(func() { _ = client.Close() })
	server.Stop()
	for policy, sent := range map[ratelimit.FailurePolicy]int{ratelimit.FailLocal: 1, ratelimit.FailOpen: 5} {
		var log redistest.Log
		logger := slog.New(slog.NewTextHandler(&log, nil))
		limiter := ratelimit.New(redisstore.New(client), ratelimit.WithFailurePolicy(policy), ratelimit.WithLogger(logger))
		side := &far{status: 429, retryAfter: "30"}
		transport := Transport(limiter, nil, []ratelimit.Rule{{Name: "api", Limit: 100, Per: time.Second}}, side)
		for i := range 5 {
			_, err := get(t, transport)
			if refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); i >= sent && (!ok || refusal.RetryAfter < 20*time.Second) {
				t.Errorf("%v: got %v", policy, err)
			}
		}
		if side.seen != sent || strings.Contains(log.String(), "could not be stored") {
			t.Errorf("%v: %d requests were sent, want %d; %s", policy, side.seen, sent, log.String())
		}
	}
}
