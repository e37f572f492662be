package redisstore_test

import (
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// A program makes one store for its client. The store talks to the server when the first call is decided, or when Ping asks.
func ExampleNew() {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379"})
	defer client.Close()
	limiter := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(100*time.Millisecond)), ratelimit.WithPrefix("shop"))

	search := ratelimit.Rule{Name: "search", Algorithm: ratelimit.TokenBucket, Limit: 10, Per: time.Second, Burst: 20}
	fmt.Println(limiter.Check(search))
	keys, err := limiter.StateKeys(ratelimit.Request{Rule: search, Key: "ann"})
	fmt.Println(keys, err)
	// Output:
	// <nil>
	// [shop:search:{ann}:bucket:1s] <nil>
}

// The user of the server needs permission for these commands on keys of the limiter's prefix.
func ExampleCommands() {
	fmt.Println(redisstore.Commands(ratelimit.Rule{Name: "login", Algorithm: ratelimit.FixedWindow, Limit: 5, Per: time.Minute}))
	// Output:
	// [DEL EVAL EVALSHA GET HMGET HSCAN MGET SET SETRANGE TIME ZRANGEBYSCORE] <nil>
}
