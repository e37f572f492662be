package redisstore

import (
	"testing"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// The blocks of a prefix are listed whatever else the server has: keys of another type that look like blocks, and blocks of a prefix that begins alike.
func TestBlocksAmongOtherKeys(t *testing.T) {
	t.Parallel()
	s, server := open(t)
	once := ratelimit.Rule{Name: "once", Limit: 1, Per: time.Hour, Block: time.Hour}
	for prefix, subject := range map[string]string{"shop": "eve", "shop:eu": "ann"} {
		l := ratelimit.New(s, ratelimit.WithPrefix(prefix))
		for range 2 {
			if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: once, Key: subject}); err != nil {
				t.Fatal(err)
			}
		}
	}
	server.Do("HSET shop:once:{joe}:block:1h a b")
	for prefix, subject := range map[string]string{"shop": "eve", "shop:eu": "ann"} {
		all, whole, err := s.Blocks(t.Context(), prefix, 10)
		if err != nil || !whole || len(all) != 1 || all[0].Rule != "once" || all[0].Subject != subject {
			t.Errorf("%s: got %+v, all %t, %v", prefix, all, whole, err)
		}
	}
}
