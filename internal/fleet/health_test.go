package fleet_test

import (
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// Health tells a server that refuses writes from one that does not, and what is not known from 0.
func TestHealth(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	health := func(measured, full bool, most int64) {
		t.Helper()
		h, err := f.Health(t.Context())
		if err != nil || h.Measured != measured || h.Full != full || h.MaxMemory != most || measured != (h.Memory > 0) || h.RoundTrip <= 0 {
			t.Errorf("got %+v, %v", h, err)
		}
	}
	health(true, false, 0)
	server.Do("CONFIG SET maxmemory 1gb")
	health(true, false, 1<<30)
	server.Do("CONFIG SET maxmemory 1")
	health(true, true, 1)
	server.Do("ACL SETUSER default -info")
	health(false, true, 0)
	server.Do("CONFIG SET maxmemory 0")
	health(false, false, 0)
	server.Do("ACL SETUSER default -set")
	health(false, false, 0)
	if keys := server.Do("KEYS *"); keys != "" {
		t.Errorf("Health left keys: %s", keys)
	}
}
