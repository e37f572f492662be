package redisstore

import (
	"testing"
	"time"
	"unsafe"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// The beat renews the permits of the key that the call had, whatever the program has written into the memory of the key meanwhile.
func TestRenewalOfAKeyWhoseMemoryIsUsedAgain(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	t.Cleanup(func() { _ = client.Close() })
	own := New(client, WithTimeout(time.Minute)).(*store)
	rule := ratelimit.Rule{Name: "running", Limit: 1, Per: time.Hour, Algorithm: ratelimit.Concurrency}
	text := []byte("ann")
	rules := wrap.NewRules("p.T.M", rule)
	taken, err := wrap.Begin(t.Context(), rules.On(ratelimit.New(own)), rules, wrap.Charge{Key: unsafe.String(&text[0], 3), Cost: 1})
	if err != nil {
		t.Fatal(err)
	}
	copy(text, "bob")
	own.renew(t.Context(), "ratelimit", true)
	taken.Release(t.Context())
	own.renew(t.Context(), "ratelimit", true)
	if keys := client.Keys(t.Context(), "ratelimit:*").Val(); len(keys) > 0 {
		t.Errorf("the permits under %q are left", keys)
	}
}
