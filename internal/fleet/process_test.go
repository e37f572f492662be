package fleet_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/plain"
)

// A process tells how many limiters live in it and by which secrets they hash, on each store. A limiter that the program dropped does not count, and
// neither does one of another prefix.
func TestLimitersOfAProcess(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	secretA, secretB := bytes.Repeat([]byte("a"), 32), bytes.Repeat([]byte("b"), 32)
	for name, store := range map[string]ratelimit.Store{
		"memory": memstore.New(), "redis": redisstore.New(c), "plain": plain.New(c),
	} {
		t.Run(name, func(t *testing.T) {
			of := func(options ...ratelimit.Option) *ratelimit.Limiter {
				return ratelimit.New(store, append(options, ratelimit.WithPrefix(name), ratelimit.WithLogger(slog.New(slog.DiscardHandler)))...)
			}
			one, same := of(ratelimit.WithSubjectHash(secretA)), of(ratelimit.WithSubjectHash(secretA))
			other, without := of(ratelimit.WithSubjectHash(secretB)), of()
			ratelimit.New(store, ratelimit.WithPrefix(name+"2"))
			if err := one.Check(ratelimit.Rule{Limit: 1, Per: time.Second, Algorithm: ratelimit.FixedWindow}); err != nil {
				t.Fatal(err)
			}
			a, b := (*decide.Limiter)(one).Fingerprint(), (*decide.Limiter)(other).Fingerprint()
			if a == b || len(a) < 8 || a != (*decide.Limiter)(same).Fingerprint() || (*decide.Limiter)(without).Fingerprint() != "" {
				t.Errorf("got the fingerprints %q and %q", a, b)
			}
			f := (*decide.Limiter)(one).Fleet()
			says := func(limiters int, secrets ...string) {
				t.Helper()
				slices.Sort(secrets)
				redistest.Eventually(t, fmt.Sprint(limiters, secrets), func() bool {
					runtime.GC()
					for i := 0; i < 5 && !f.IsLocal(); i++ { // then the process says what is new
						f.Beat()
					}
					all, err := f.Processes(t.Context())
					return err == nil && len(all) == 1 && all[0].Limiters == limiters && slices.Equal(all[0].Secrets, secrets)
				})
			}
			says(4, "", a, b)
			runtime.KeepAlive(without)
			runtime.KeepAlive(other)
			says(2, a)
			runtime.KeepAlive(same)
			says(1, a)
			runtime.KeepAlive(one)
		})
	}
}

// What a process says of itself stays below the bound, and tells its build apart from others that have no version.
func TestBuildWithoutAVersion(t *testing.T) {
	all, err := fleet.NewLocal(time.Now, nil).Processes(t.Context())
	if err != nil || len(all) != 1 || !regexp.MustCompile(`^devel-[0-9a-f]{8}$`).MatchString(all[0].Build) {
		t.Fatalf("got %+v, %v", all, err)
	}
	host, _ := os.Hostname()
	if got, want := all[0].String(), fmt.Sprintf("%s %d on %s", all[0].Program, os.Getpid(), host); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// StoreFailure is that of decisions, until the store works again.
func TestStoreFailure(t *testing.T) {
	now := time.Now()
	f := fleet.NewLocal(func() time.Time { return now }, nil)
	if _, err := f.StoreFailure(); err != nil {
		t.Error(err)
	}
	f.NoteStore(os.ErrDeadlineExceeded)
	now = now.Add(90 * time.Second)
	all, err := f.Processes(t.Context())
	if since := all[0].SinceFailure(); err != nil || since < 90*time.Second || since > 91*time.Second {
		t.Errorf("got %s, %v", since, err)
	}
	if at, err := f.StoreFailure(); err != os.ErrDeadlineExceeded || time.Since(at) > time.Hour {
		t.Errorf("got %v, %v", at, err)
	}
	f.NoteStore(nil)
	if _, err := f.StoreFailure(); err != nil {
		t.Error(err)
	}
}

// Reading what other processes say does not wait until settings are read, which takes long on a slow server.
func TestReadingWaitsForNoTurn(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	c, _ := client(t, server.Addr, 0)
	f := of(c, "p")
	f.Hide()
	defer f.Hold()()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for name, read := range map[string]func() error{
		"processes": func() error { _, err := f.Processes(ctx); return err },
		"rules":     func() error { _, err := f.Rules(ctx); return err },
		"history":   func() error { _, err := f.History(ctx, time.Time{}); return err },
		"changes":   func() error { _, err := f.Changes(ctx); return err },
		"shared":    func() error { _, err := f.Shared(ctx); return err },
		"pauses":    func() error { _, _, err := f.Pauses(ctx); return err },
	} {
		if err := read(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
