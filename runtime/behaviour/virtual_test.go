package behaviour_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// inVirtualTime runs a scenario once for each store that knows every rule. Time passes only while all goroutines of the scenario wait, and then at
// once. On Redis the script reads the scenario's clock.
func inVirtualTime(t *testing.T, scenario func(*testing.T, *subject)) {
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) { scenario(t, onStore(memstore.New())) })
	})
	for name, options := range scriptedBy {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := redistest.Start(t).Addr
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(time.Until(afterExpiries))
				scenario(t, onStores(func() ratelimit.Store { return scripted(clocked(t, addr), options...) }))
				time.Sleep(time.Minute) // until the stores ask the server nothing more by themselves
			})
		})
	}
}

// afterExpiries is when virtual time begins on Redis. The server's own clock shows an earlier time as long as a test runs, so no key expires.
var afterExpiries = time.Date(2036, time.March, 7, 21, 0, 0, 0, time.UTC)

// clocked returns a client of a server that goes by the clock of the bubble.
func clocked(t *testing.T, addr string) *redis.Client {
	connect := func() *redis.Client {
		client := redis.NewClient(&redis.Options{Addr: addr, ReadTimeout: patience})
		t.Cleanup(func() { _ = client.Close() })
		return client
	}
	client, v := connect(), &virtual{server: connect()}
	if err := v.server.FunctionLoad(context.Background(), byClock(t, lua.Library)).Err(); err != nil && !strings.Contains(err.Error(), "already exists") {
		t.Fatal(err)
	}
	var err error
	if v.sha, err = v.server.ScriptLoad(context.Background(), byClock(t, lua.Script)).Result(); err != nil {
		t.Fatal(err)
	}
	client.AddHook(v)
	return client
}

// byClock returns a script that reads the time from a key.
func byClock(t *testing.T, script string) string {
	t.Helper()
	const ofServer, ofKey = "local time = call('TIME')", "local time = { 0, call('GET', 'clock') }"
	if strings.Count(script, ofServer) != 1 {
		t.Fatalf("the script does not read its time by %s", ofServer)
	}
	return strings.Replace(script, ofServer, ofKey, 1)
}

// virtual is a hook that tells the server the time before it runs a script.
type virtual struct {
	server *redis.Client
	sha    string // of the script
	mu     sync.Mutex
	told   int64 // the time that the server was told last
}

func (v *virtual) DialHook(next redis.DialHook) redis.DialHook { return next }

func (v *virtual) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := v.tell(cmd); err != nil {
			return err
		}
		err := next(ctx, cmd)
		if now, ok := cmd.(*redis.TimeCmd); ok {
			now.SetVal(time.Now())
		}
		return err
	}
}

func (v *virtual) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if err := v.tell(cmd); err != nil {
				return err
			}
		}
		return next(ctx, cmds)
	}
}

func (v *virtual) tell(cmd redis.Cmder) error {
	switch args := cmd.Args(); {
	case cmd.Name() == "evalsha" && args[1] == lua.SHA:
		args[1] = v.sha
	case cmd.Name() != "fcall":
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	now := time.Now().UnixMicro()
	if now == v.told {
		return nil
	}
	v.told = now
	return v.server.Set(context.Background(), "clock", now, 0).Err()
}
