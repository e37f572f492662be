package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// doctor sees what the server denies other users. It is bad if rules are in use and no process reports meanwhile.
func TestDoctorSeesOthersDenials(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Do("ACL SETUSER shop on >right ~* -@all +get")
	for _, password := range []string{"wrong", "wrong", "right"} {
		client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "shop", Password: password, MaxRetries: -1})
		_ = client.Set(t.Context(), "k", "v", 0).Err() // fails
		_ = client.Close()
	}
	found := examined(t, server.Addr)
	found.require(t, operate.StoreDown, operate.Warning, "shop to sign in (")
	found.require(t, operate.StoreDown, operate.Warning, "shop SET (1)")
	newFleet(t, server.Addr).known(map[string]string{"l": ruleText(login)})
	found = examined(t, server.Addr)
	found.require(t, operate.StoreDown, operate.Bad, "rules are in use, but no process can write")
	if found.status != failed {
		t.Errorf("status %d", found.status)
	}
}

// A server that accepts connections and says nothing can be reached.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for _, command := range []string{"doctor", "processes", "blocked"} {
		text, status := ctlWith(t, env("redis://"+silent.Addr().String()+"?read_timeout=50ms"), "", command)
		if status != failed || !strings.Contains(text, "the server did not answer in time: see whether it runs, hangs or is slow") {
			t.Errorf("%s: status %d, %s", command, status, text)
		}
	}
}

// doctor finds programs that declare a rule of one name by chance.
func TestDoctorFindsSharedCounts(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	for program, unnamed := range map[string][]string{"shop": {"x", "y"}, "desk": {"y"}, "batch": {"z"}} {
		set, _ := json.Marshal(map[string]any{"at": time.Now().UTC(), "program": program, "rules": []string{}, "unnamed": unnamed})
		client.HSet(t.Context(), "ratelimit.seen:{ratelimit}:sets", program, set)
	}
	examined(t, server.Addr).require(t, operate.ProgramShared, operate.Warning, "a rule without a name")
}

// doctor says that the sizes of keys are those of a sample, if the server has more.
func TestDoctorSamplesKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 3000 {
			p.Set(t.Context(), key.State("ratelimit", fmt.Sprint("rule", i%7), fmt.Sprint("user", i), "1m"), "x", time.Hour)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	examined(t, server.Addr).requireFact(t, "keys", "2 more rules: these are 1,000 sampled keys; the server has more")
}

// On a cluster, doctor finds clients that know only one server.
func TestDoctorFindsPlainClients(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3)
	plain := redis.NewClient(&redis.Options{Addr: cluster[0].Addr})
	defer plain.Close()
	ctx, end := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	calls.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			_ = plain.Get(ctx, fmt.Sprint("k", i)).Err() // MOVED, mostly
		}
	})
	defer calls.Wait()
	defer end()
	examined(t, cluster[1].Addr).require(t, operate.StoreDown, operate.Warning, "perhaps a client knows only one server")
}
