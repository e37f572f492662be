package redisstore

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
)

// The first line of an outage says what to do, in the words of Ping, and the true reason.
func TestFirstLineOfAnOutage(t *testing.T) {
	const away = "the server cannot be reached: check the address and whether it runs: "
	for name, test := range map[string]struct {
		begin            func(*redistest.Server)
		sentence, reason string
		plain            string // the sentence without scripts, if it is another one
	}{
		"killed": {(*redistest.Server).Stop, away, "connection refused", away},
		"hung":   {(*redistest.Server).Pause, "the server ", "", "the server "},
		"full": {func(s *redistest.Server) { s.Do("CONFIG SET maxmemory 1") },
			"the server's memory is full: raise its maxmemory: ", "OOM command not allowed", refused},
		"password": {func(s *redistest.Server) { s.Do("CONFIG SET requirepass secret") },
			"the server wants a password: set it in the client's options: ", "NOAUTH", "the server wants a password: "},
		"replica": {func(s *redistest.Server) { s.Do("REPLICAOF 127.0.0.1 1") },
			"the server is a read-only replica: connect to its master: ", "READONLY", refused},
		"too few replicas": {func(s *redistest.Server) { s.Do("CONFIG SET min-replicas-to-write 3") },
			"the server has too few replicas and refuses writes: see its min-replicas-to-write: ", "NOREPLICAS", refused},
	} {
		for _, isPlain := range []bool{false, true} {
			server := redistest.Start(t)
			client, log := redis.NewClient(&redis.Options{Addr: server.Addr}), new(redistest.Log)
			store := New(client)
			if isPlain {
				store, test.sentence, test.reason = plain.New(client), test.plain, ""
			}
			limiter := ratelimit.New(store, ratelimit.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
			test.begin(server)
			_, _ = limiter.Allow(context.Background(), ratelimit.Request{Rule: ratelimit.Rule{
				Name: "r", Limit: 5, Per: time.Minute, Algorithm: ratelimit.FixedWindow,
			}})
			if name == "hung" {
				server.Resume()
			}
			_ = client.Close()
			_, line, found := strings.Cut(log.String(), "the rate limit store fails; failure policies decide")
			line, _, _ = strings.Cut(line, "\n")
			line = strings.ReplaceAll(line, `\"`, `"`)
			if !found || !strings.Contains(line, test.sentence) || !strings.Contains(line, test.reason) {
				t.Errorf("%s: logged %s, want %s… %s", name, log, test.sentence, test.reason)
			}
		}
	}
}

// refused is what a server says to a transaction.
const refused = `the server refused a write: ask "ratelimitctl doctor" why: EXECABORT`
