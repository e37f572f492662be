// Httpapi shows limits over HTTP, in the service of a library. Package httplimit tells clients how much of their quota remains, and
// answers refused calls with status 429, a Retry-After header, and a JSON problem that names the violated policies. The directives are in
// library.go.
//
//	go run . -demo    makes some requests, prints the responses, and ends
//	go run .          serves; curl -i -H 'Authorization: Bearer ann' '127.0.0.1:8080/books?title=go'
//
// It counts in this process, or on Redis if REDIS_URL is set: REDIS_URL=redis://127.0.0.1:6379 go run . -demo
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8080", "the `address` to serve at")
	prefix := flag.String("prefix", "library", "the `text` that the keys in Redis begin with")
	story := flag.Bool("demo", false, "serve at a free port, make some requests, print what became of them, and end")
	flag.Parse()
	var tell io.Writer
	if *story {
		tell, *addr = os.Stdout, "127.0.0.1:0"
		*prefix = fmt.Sprintf("library-demo-%d", time.Now().UnixMicro()) // a new prefix each time, so that the output is always the same
	}
	if err := run(tell, *addr, os.Getenv("REDIS_URL"), *prefix); err != nil {
		log.Fatal(err)
	}
}

// run serves until it fails. If tell is not nil, it runs the demonstration, prints it there, and ends.
func run(tell io.Writer, addr, redisURL, prefix string) error {
	store, err := newStore(redisURL)
	if err != nil {
		return err
	}
	limiter := ratelimit.New(store, ratelimit.WithPrefix(prefix))
	if err := limiter.Ping(context.Background()); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           newHandler(NewLimitedLibrary(books, limiter), newLimitedExport(&export{books}, limiter), users),
		ReadHeaderTimeout: 5 * time.Second,
	}
	if tell == nil {
		log.Printf("listening on %s", listener.Addr())
		return server.Serve(listener)
	}
	go server.Serve(listener)
	defer server.Close()
	return demo(tell, "http://"+listener.Addr().String())
}

// newStore returns a store on the Redis server at a URL, or in this process if the URL is "". The read_timeout in the URL limits the
// time of a decision.
func newStore(url string) (ratelimit.Store, error) {
	if url == "" {
		return memstore.New(), nil
	}
	options, err := redis.ParseURL(url)
	if err != nil {
		return nil, fmt.Errorf("REDIS_URL: %w", err)
	}
	return redisstore.New(redis.NewClient(options), redisstore.WithTimeout(cmp.Or(options.ReadTimeout, 250*time.Millisecond))), nil
}

var books = shelf{
	{ISBN: "9780134190440", Title: "The Go Programming Language"},
	{ISBN: "9781098105716", Title: "Efficient Go"},
	{ISBN: "9781449373320", Title: "Designing Data-Intensive Applications"},
}

// users maps tokens to users, as a real service would with its session store.
var users = map[string]string{"ann": "ann", "bob": "bob"}
