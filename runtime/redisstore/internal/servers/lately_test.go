package servers

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Lately counts for all stores of one client, and begins anew after a minute.
func TestLately(t *testing.T) {
	one, two := redis.NewClient(&redis.Options{}), redis.NewClient(&redis.Options{})
	defer one.Close()
	defer two.Close()
	for range 2 {
		lately.since = time.Now().Add(-time.Minute)
		for i, client := range []*redis.Client{one, one, two, one} {
			if n, want := New("test", client).Lately("what"), []int{1, 2, 1, 3}[i]; n != want {
				t.Errorf("store %d: %d times, want %d", i, n, want)
			}
		}
		if n := New("test", one).Lately("other"); n != 1 {
			t.Errorf("something else was done %d times, want once", n)
		}
	}
}
