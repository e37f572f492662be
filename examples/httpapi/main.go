// Httpapi serves a library over HTTP. Package httplimit tells clients what they have left, and answers refused calls: status 429, a
// Retry-After header, and a problem in JSON that names the violated policies. The directives are in library.go.
//
//	go run . &
//	curl -i -H 'Authorization: Bearer ann' '127.0.0.1:8080/books?title=go'
//
// It counts in this process, or on Redis when REDIS_ADDR is set.
package main

import (
	"cmp"
	"context"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

func main() {
	limiter := ratelimit.New(newStore(), ratelimit.WithPrefix("library"))
	if err := limiter.Ping(context.Background()); err != nil {
		log.Fatal(err)
	}
	server := &http.Server{
		Addr:              cmp.Or(os.Getenv("ADDR"), "127.0.0.1:8080"),
		Handler:           newHandler(NewLimitedLibrary(books, limiter), newLimitedExport(&export{books}, limiter), users),
		ReadHeaderTimeout: 5 * time.Second,
	}
	log.Printf("listening on %s", server.Addr)
	log.Fatal(server.ListenAndServe())
}

func newStore() ratelimit.Store {
	if addr := os.Getenv("REDIS_ADDR"); addr != "" {
		return redisstore.New(redis.NewClient(&redis.Options{Addr: addr}))
	}
	return memstore.New()
}

var books = shelf{
	{ISBN: "9780134190440", Title: "The Go Programming Language"},
	{ISBN: "9781098105716", Title: "Efficient Go"},
	{ISBN: "9781449373320", Title: "Designing Data-Intensive Applications"},
}

// users maps tokens to users, as a real service would with its session store.
var users = map[string]string{"ann": "ann", "bob": "bob"}
