package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
)

// The first line of an outage says what to do, in the words of Ping, and the true reason.
func TestFirstLineOfAnOutage(t *testing.T) {
	const away, late = "the server cannot be reached: check the address and whether it runs: ", "the server did not answer in time: "
	for name, test := range map[string]struct {
		begin            func(*redistest.Server)
		sentence, reason string
		plain            string // the sentence without scripts, if it is another one
	}{
		"killed": {(*redistest.Server).Stop, away, "connection refused", "the server "}, // it may still try to connect
		"hung":   {(*redistest.Server).Pause, late, "", ""},
		"full": {func(s *redistest.Server) { s.Do("CONFIG SET maxmemory 1") },
			"the server's memory is full: raise its maxmemory: ", "OOM command not allowed", ""},
		"password": {func(s *redistest.Server) { s.Do("CONFIG SET requirepass secret") },
			"the server wants a password: set it in the client's options: ", "NOAUTH", ""},
		"replica": {func(s *redistest.Server) { s.Do("REPLICAOF 127.0.0.1 1") },
			"the server is a read-only replica: connect to its master: ", "READONLY", ""},
		"too few replicas": {func(s *redistest.Server) { s.Do("CONFIG SET min-replicas-to-write 3") },
			"the server has too few replicas and refuses writes: see its min-replicas-to-write: ", "NOREPLICAS", ""},
	} {
		for _, isPlain := range []bool{false, true} {
			server := redistest.Start(t)
			client, log := redis.NewClient(&redis.Options{Addr: server.Addr}), new(redistest.Log)
			store := New(client)
			if isPlain {
				store = plain.New(client)
			}
			if isPlain && test.plain != "" {
				test.sentence, test.reason = test.plain, ""
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

// An error of Reset says what to do, too.
func TestResetOfALostServer(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1})
	defer client.Close()
	for _, store := range []ratelimit.Store{New(client), plain.New(client)} {
		l := ratelimit.New(store, ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
		_, err := l.Reset(t.Context(), ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 5, Per: time.Minute, Algorithm: ratelimit.FixedWindow}})
		if _, ok := errors.AsType[*ratelimit.StoreError](err); !ok || !strings.Contains(err.Error(), "the server cannot be reached: check the address") {
			t.Errorf("got %v", err)
		}
	}
}

// While a server hangs, each call says that it did not answer in time, also those that wait for a connection or do not try the server.
func TestErrorsOfAHang(t *testing.T) {
	const timeout = 500 * time.Millisecond // on a busy machine it takes a while to connect
	for kind, begin := range map[string]func(testing.TB) (redis.UniversalClient, []*redistest.Server){
		"server": func(t testing.TB) (redis.UniversalClient, []*redistest.Server) {
			server := redistest.Start(t)
			return redis.NewClient(&redis.Options{Addr: server.Addr}), []*redistest.Server{server}
		},
		"cluster": func(t testing.TB) (redis.UniversalClient, []*redistest.Server) {
			cluster := redistest.StartCluster(t, 2)
			return redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()}), cluster
		},
		"ring": func(t testing.TB) (redis.UniversalClient, []*redistest.Server) {
			server := redistest.Start(t)
			return redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": server.Addr}}), []*redistest.Server{server}
		},
	} {
		for _, isPlain := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, plain %t", kind, isPlain), func(t *testing.T) {
				t.Parallel()
				client, servers := begin(t)
				defer client.Close()
				store := New(client, WithTimeout(timeout))
				if isPlain {
					store = plain.New(client, plain.WithTimeout(timeout))
				}
				l := ratelimit.New(store, ratelimit.WithLogger(slog.New(slog.DiscardHandler)))
				ask := ratelimit.Request{Rule: ratelimit.Rule{Name: "r", Limit: 1000, Per: time.Minute, Algorithm: ratelimit.FixedWindow}}
				redistest.Eventually(t, "a decision", func() bool { _, err := l.Allow(t.Context(), ask); return err == nil })
				for _, s := range servers {
					s.Pause()
					defer s.Resume()
				}
				var calls sync.WaitGroup
				for range 20 {
					for range 5 {
						calls.Go(func() {
							if _, err := l.Allow(context.Background(), ask); err == nil || !strings.Contains(err.Error(), "the server did not answer in time: ") {
								t.Error(err)
							}
						})
					}
					time.Sleep(timeout / 10) // so that some calls try the server again
				}
				calls.Wait()
			})
		}
	}
}
