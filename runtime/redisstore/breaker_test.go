package redisstore_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// blackHole accepts connections and never answers.
func blackHole(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { conn.Close() })
		}
	}()
	return l.Addr().String()
}

// silence connects to a server that never answers, in a time that obeys.
func silence(context.Context, string, string) (net.Conn, error) {
	conn, _ := net.Pipe()
	return conn, nil
}

// Once one call has waited for a server in vain, the next ones do not, even if callers with less patience gave up meanwhile.
func TestBreakerSparesCallsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:6379", Dialer: silence, ReadTimeout: 200 * time.Millisecond, WriteTimeout: 200 * time.Millisecond,
			Protocol: 2, DisableIdentity: true,
		})
		defer client.Close()
		limiter := ratelimit.New(redisstore.New(client))
		request := ratelimit.Request{Rule: ratelimit.PerMinute(1), Key: "k"}

		_, err := limiter.Allow(context.Background(), request)
		if _, ok := errors.AsType[*ratelimit.StoreError](err); !ok {
			t.Fatalf("got %v, want a *StoreError", err)
		}
		impatient, cancel := context.WithTimeout(context.Background(), time.Nanosecond)
		defer cancel()
		<-impatient.Done()
		if _, err := limiter.Allow(impatient, request); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the caller's deadline", err)
		}
		if _, err = limiter.Allow(context.Background(), request); err == nil || !strings.Contains(err.Error(), "not tried") {
			t.Errorf("got %v, want the answer of the call before", err)
		}
		time.Sleep(time.Minute) // the limiter's overrides are read in the background, in vain
	})
}

// What a cancelled caller waits for is its own business. The client would wait for ever.
func TestCommandsReturnWithTheirContext(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: blackHole(t), ReadTimeout: -1, Protocol: 2, DisableIdentity: true})
	defer client.Close()
	limiter := ratelimit.New(redisstore.New(client))
	for name, ask := range map[string]func(context.Context) error{
		"Reset": func(ctx context.Context) error {
			_, err := limiter.Reset(ctx, ratelimit.Request{Rule: ratelimit.PerMinute(1), Key: "k"})
			return err
		},
		"SetRate": func(ctx context.Context) error {
			return limiter.Overrides().Set(ctx, "login", ratelimit.Override{Burst: 1})
		},
		"ClearRate": func(ctx context.Context) error { return limiter.Overrides().Clear(ctx, "login") },
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
		defer cancel()
		returned := make(chan error, 1)
		go func() { returned <- ask(ctx) }()
		select {
		case err := <-returned:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: got %v, want the caller's deadline", name, err)
			}
		case <-time.After(5 * time.Second):
			t.Errorf("%s does not return", name)
		}
	}
}
