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
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// doctor sees what the server denies other users. It is bad if rules are in use and no process reports meanwhile.
func TestDoctorSeesOthersDenials(t *testing.T) {
	server := redistest.Start(t)
	server.Do("ACL SETUSER shop on >right ~* -@all +get")
	for _, password := range []string{"wrong", "wrong", "right"} {
		client := redis.NewClient(&redis.Options{Addr: server.Addr, Username: "shop", Password: password, MaxRetries: -1})
		_ = client.Set(t.Context(), "k", "v", 0).Err() // fails
		_ = client.Close()
	}
	found, _ := examined(t, server.Addr)
	requireFinding(t, found, "denied", warn, "shop to sign in (")
	requireFinding(t, found, "denied", warn, "shop SET (1)")
	requireFinding(t, found, "errors", fine, " WRONGPASS, ")
	requireFinding(t, found, "errors", fine, " NOPERM since the server started")
	requireFinding(t, found, "processes", fine, "none runs, or none can write")
	newFleet(t, server.Addr).known(map[string]string{"l": ruleText(login)})
	found, status := examined(t, server.Addr)
	requireFinding(t, found, "processes", bad, "rules are in use, but no process can write")
	if status != failed {
		t.Errorf("status %d", status)
	}
}

// A server that accepts connections and says nothing can be reached.
func TestSilentServer(t *testing.T) {
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
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	for program, unnamed := range map[string][]string{"shop": {"x", "y"}, "desk": {"y"}, "batch": {"z"}} {
		set, _ := json.Marshal(map[string]any{"at": time.Now().UTC(), "program": program, "rules": []string{}, "unnamed": unnamed})
		client.HSet(t.Context(), "ratelimit.seen:{ratelimit}:sets", program, set)
	}
	found, _ := examined(t, server.Addr)
	requireFinding(t, found, "programs", warn, "desk and shop have a rule without a name")
}

// doctor says that the sizes of keys are those of a sample, if the server has more.
func TestDoctorSamplesKeys(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range 3 * maxSample {
			p.Set(t.Context(), key.State("ratelimit", fmt.Sprint("rule", i%7), fmt.Sprint("user", i), "1m"), "x", time.Hour)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	found, _ := examined(t, server.Addr)
	requireFinding(t, found, "keys", fine, "2 more rules: these are 1000 sampled keys; the server has more")
}

// On a cluster, doctor finds clients that know only one server.
func TestDoctorFindsPlainClients(t *testing.T) {
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
	text, _ := ctl(t, cluster[1].Addr, "-json", "doctor")
	var all []finding
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		t.Fatal(err)
	}
	for _, f := range all {
		if f.Check == "clients" && f.Server == cluster[0].Addr && f.Status == warn {
			return
		}
	}
	t.Errorf("got %s", text)
}

// For what takes too long on a real server, the test gives the measurements itself.
func TestDoctorOfMeasurements(t *testing.T) {
	trips := func(late int) (all []time.Duration) {
		for range 100 - late {
			all = append(all, time.Millisecond)
		}
		for range late {
			all = append(all, 300*time.Millisecond)
		}
		return all
	}
	slow := make([]time.Duration, 10)
	for i := range slow {
		slow[i] = 30 * time.Millisecond
	}
	for _, test := range []struct {
		trips        []time.Duration
		status, text string
	}{
		{trips(0), fine, "median 1ms, 99% 1ms, longest 1ms of 100"},
		{trips(1), fine, "longest 300ms of 100"},
		{trips(18), bad, "18% took longer than the 250ms that decisions wait"},
		{slow, warn, "each call waits so long"},
		{nil, hides, "+time"},
	} {
		requireFinding(t, map[string]finding{"round trip": checkTrips(t.Context(), &server{trips: test.trips})}, "round trip", test.status, test.text)
	}
	info := func(used, keys, evicted int) map[string]string {
		return map[string]string{"used_memory": fmt.Sprint(used), "used_memory_dataset": fmt.Sprint(used), "maxmemory": "10000000", "db0": fmt.Sprintf("keys=%d,expires=0", keys),
			"db1": "keys=1", "dbx": "keys=9", "evicted_keys": fmt.Sprint(evicted)}
	}
	for _, test := range []struct {
		later        map[string]string
		status, text string
	}{
		{info(1_000_000, 10, 0), fine, "0 keys and 0.0 kB a second, over 2s"},
		{info(1_020_000, 210, 0), warn, "100 keys and 9.8 kB a second, over 2s: at this rate the memory is full in 15 minutes"},
		{info(1_000_200, 12, 0), fine, "1 key and 0.1 kB a second"},
		{info(1_000_000, 10, 3), warn, "3 keys were removed meanwhile"},
		{nil, hides, "+info"},
	} {
		s := &server{info: info(1_000_000, 10, 0), later: test.later, observed: 2 * time.Second}
		requireFinding(t, map[string]finding{"growth": checkGrowth(t.Context(), s)}, "growth", test.status, test.text)
	}
	before, after := map[string]string{"errorstat_NOPERM": "count=1"}, map[string]string{"errorstat_NOPERM": "count=3"}
	s := &server{info: before, later: after}
	requireFinding(t, map[string]finding{"errors": checkErrors(t.Context(), s)}, "errors", warn, "3 NOPERM (2 just now) since the server started")
	for kind, refuses := range map[string]bool{"WRONGPASS": true, "NOAUTH": true, "NOPERM": false, "BUSY": false} {
		s := &server{later: map[string]string{"errorstat_" + kind: "count=1"}}
		if f := checkErrors(t.Context(), s); f.refuses != refuses {
			t.Errorf("%s: got %+v", kind, f)
		}
	}
}
