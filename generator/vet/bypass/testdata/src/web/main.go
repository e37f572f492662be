// Command web has HTTP handlers that use an annotated struct, and middleware.
package main

import (
	"context"
	"log"
	"net/http"

	"outbound"
	"sms"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// fetcher is the interface that a handler needs.
type fetcher interface {
	Fetch(ctx context.Context, url string) error
}

// closer has no method with limits.
type closer interface{ Close() error }

type api struct {
	client  *outbound.Client
	limited *outbound.LimitedClient
	sender  sms.Sender
	fetch   func(ctx context.Context, url string) error
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.limited.Fetch(r.Context(), r.URL.Path)
	a.client.Fetch(r.Context(), r.URL.Path) // want `Fetch of \*outbound.Client is used without its rate limits; use what outbound.NewLimitedClient returns`
	a.sender.SendCode(r.Context(), "1")
}

func newAPI(client *outbound.Client, limiter *ratelimit.Limiter) *api {
	return &api{
		client:  client,
		limited: outbound.NewLimitedClient(client, limiter),
		sender:  sms.NewLimitedSender(sms.SenderFunc(client.Fetch), limiter),
		fetch:   client.Fetch, // want `Fetch of \*outbound.Client is used`
	}
}

func middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { next.ServeHTTP(w, r) })
}

// recorder embeds the struct, and has a method of its own that is not limited.
type recorder struct{ *outbound.Client }

func (recorder) Do(r *http.Request) (*http.Response, error) { return nil, nil }

func main() {
	limiter := ratelimit.New()
	client := outbound.New()
	defer client.Close()
	mux := http.NewServeMux()
	mux.Handle("/", middleware(newAPI(client, limiter)))
	mux.HandleFunc("/fetch", func(w http.ResponseWriter, r *http.Request) {
		if err := client.Fetch(r.Context(), "/"); err != nil { // want `Fetch of \*outbound.Client is used`
			http.Error(w, err.Error(), http.StatusTooManyRequests)
		}
	})
	poll(outbound.NewLimitedClient(client, limiter))
	poll(client) // want `\*outbound.Client is used as fetcher without its rate limits; wrap it with outbound.NewLimitedClient`
	var c closer = client
	c.Close()
	r := recorder{client}
	r.Do(nil)
	r.Fetch(context.Background(), "")                          // want `Fetch of recorder is used`
	(*outbound.Client).Fetch(client, context.Background(), "") // want `Fetch of \*outbound.Client is used`
	fetch := client.Fetch                                      // want `Fetch of \*outbound.Client is used`
	fetch(context.Background(), "")
	client.Fetch(context.Background(), "/health") //ratelimit:bare a health check does not count
	log.Print(client)

	outbound.LimitHook(outbound.LimitHook(nil, limiter), limiter) // want `this is limited already; a second outbound.LimitHook takes the permits of each call twice`
	outbound.LimitCallbacks(outbound.Callbacks{}, limiter)
}

func poll(fetcher) {}
