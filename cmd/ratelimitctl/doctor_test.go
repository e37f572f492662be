package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// examined returns doctor's findings about one server, by check.
func examined(t *testing.T, addr string, args ...string) (found map[string]finding, status int) {
	t.Helper()
	text, status := ctl(t, addr, append([]string{"-json"}, append(args, "doctor")...)...)
	var all []finding
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&all); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	found = map[string]finding{}
	for _, f := range all {
		found[f.Check] = f
	}
	return found, status
}

// requireFinding checks the finding of one check. A finding that is not fine must have advice.
func requireFinding(t *testing.T, found map[string]finding, check, status, text string) {
	t.Helper()
	f := found[check]
	if all := strings.Join(f.line(), " "); f.Status != status || !strings.Contains(all, text) {
		t.Errorf("%s: got %q, want %s, %q", check, all, status, text)
	}
	if (status == warn || status == bad) && check != "ready" && (f.Advice == "" || f.Meaning == "") {
		t.Errorf("%s: it does not say what it means and what to do: %+v", check, f)
	}
}

// All findings about a healthy server are fine.
func TestDoctorOfAHealthyServer(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--slowlog-log-slower-than", "1000000")
	f := newFleet(t, server.Addr)
	f.allow(3, ratelimit.Rule{Name: "login", Limit: 5, Per: time.Hour}, "ann")
	f.allow(3, ratelimit.Rule{Name: "search", Limit: 5, Per: time.Hour, Algorithm: ratelimit.TokenBucket}, "ann")
	found, status := examined(t, server.Addr)
	for _, f := range found {
		if f.Status != fine {
			t.Errorf("got %+v", f)
		}
	}
	if status != done || len(found) != len(checks) { // two find nothing here, and those of the fleet are none of checks
		t.Errorf("status %d, %d findings", status, len(found))
	}
	requireFinding(t, found, "keys", fine, "login 1 key of ")
	requireFinding(t, found, "keys", fine, "bytes (token-bucket)")
	requireFinding(t, found, "expiry", fine, "all of 2 keys expire")
	text, _ := ctl(t, server.Addr, "doctor")
	if lines := strings.Count(text, "\n"); lines != len(found) {
		t.Errorf("%d lines for %d findings:\n%s", lines, len(found), text)
	}
}

// doctor finds each bad setting on a real server.
func TestDoctorFindsBadSettings(t *testing.T) {
	for _, test := range []struct {
		name     string
		args     []string // for the server
		commands []string // to the server
		check    string
		status   string
		text     string
	}{
		{"allkeys", []string{"--maxmemory-policy", "allkeys-lru"}, nil, "eviction", warn, "overrides, blocks and pauses are removed"},
		{"volatile", []string{"--maxmemory-policy", "volatile-ttl"}, nil, "eviction", warn, "since they expire"},
		{"nearly full", []string{"--maxmemory", "60mb"}, []string{"SETRANGE big 52000000 x"}, "memory", warn, "calls fail when it is full. Raise maxmemory"},
		{"nearly full, with eviction", []string{"--maxmemory", "60mb", "--maxmemory-policy", "allkeys-lru"}, []string{"SETRANGE big 52000000 x"}, "memory", warn,
			"counts are removed when it is full. Raise maxmemory"},
		{"full", []string{"--maxmemory", "1kb"}, nil, "memory", bad, "calls fail when it is full"},
		{"full, not ready", []string{"--maxmemory", "1kb"}, nil, "ready", bad, "memory is full"},
		{"no persistence", nil, nil, "persistence", warn, "overrides, blocks and pauses are gone"},
		{"snapshots", []string{"--save", "3600 1"}, nil, "persistence", fine, "snapshots only"},
		{"always", []string{"--appendonly", "yes", "--appendfsync", "always"}, nil, "persistence", warn, "waits for the disk"},
		{"replica", nil, []string{"REPLICAOF 127.0.0.1 1"}, "replicas", bad, "Connect to its master 127.0.0.1:1"},
		{"replica, not ready", nil, []string{"REPLICAOF 127.0.0.1 1"}, "ready", bad, "read-only replica"},
		{"too few replicas", []string{"--min-replicas-to-write", "1"}, nil, "replicas", bad, "the server refuses writes"},
		{"too few replicas, not ready", []string{"--min-replicas-to-write", "1"}, nil, "ready", bad, "too few replicas"},
		{"lasting key", nil, []string{"SET ratelimit:x:{y}:1m z"}, "expiry", warn, "1 of 1 keys do not expire, such as ratelimit:x:{y}:1m"},
		{"overrides last", nil, []string{"HSET ratelimit.fleet:{ratelimit}:settings a b"}, "expiry", fine, "no keys"},
		{"others' keys", nil, []string{"SET ratelimits z"}, "expiry", fine, "no keys"},
		{"no INFO", nil, []string{"ACL SETUSER default -info"}, "eviction", hides, "+info"},
		{"no CONFIG", nil, []string{"ACL SETUSER default -config"}, "persistence", hides, "+config|get"},
		{"no TIME", nil, []string{"ACL SETUSER default -time"}, "clock", hides, "+time"},
		{"no TIME, no round trips", nil, []string{"ACL SETUSER default -time"}, "round trip", hides, "+time"},
		{"no SLOWLOG", nil, []string{"ACL SETUSER default -slowlog"}, "slow commands", hides, "+slowlog|get"},
		{"slow", []string{"--slowlog-log-slower-than", "0"}, []string{"SET s3cret s3cret"}, "slow commands", warn, "within an hour, the slowest "},
		{"no LATENCY", nil, []string{"ACL SETUSER default -latency"}, "latency", hides, "+latency|latest"},
		{"latency", []string{"--latency-monitor-threshold", "10", "--enable-debug-command", "yes"}, []string{"DEBUG SLEEP 0.05"}, "latency", warn, "command "},
		{"no ACL LOG", nil, []string{"ACL SETUSER default -acl|log"}, "denied", hides, "+acl|log"},
		{"no keys", nil, nil, "keys", fine, "no counts of prefix ratelimit"},
		{"no MEMORY", nil, []string{"SET ratelimit:x:{y}:1m z EX 99", "ACL SETUSER default -memory"}, "keys", hides, "+memory|usage"},
		{"no PTTL", nil, []string{"SET ratelimit:x:{y}:1m z", "ACL SETUSER default -pttl"}, "expiry", hides, "+pttl"},
		{"no SCAN", nil, []string{"ACL SETUSER default -scan"}, "expiry", hides, "+scan"},
		{"no EVAL", nil, []string{"ACL SETUSER default -eval"}, "ready", bad, "calls fail"},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := redistest.Start(t, test.args...)
			for _, command := range test.commands {
				server.Do(command)
			}
			found, status := examined(t, server.Addr)
			requireFinding(t, found, test.check, test.status, test.text)
			if strings.Contains(fmt.Sprint(found), "s3cret") {
				t.Errorf("it shows arguments of commands: %+v", found)
			}
			if (status == failed) != (strings.Contains(fmt.Sprint(found), "{"+bad)) {
				t.Errorf("status %d of %+v", status, found)
			}
		})
	}
}

// For states that no server on this machine can have, the test gives the server's reply itself.
func TestDoctorOfOtherServers(t *testing.T) {
	for _, test := range []struct {
		info                string
		check, status, text string
	}{
		{"redis_version:6.2.14", "version", bad, "Redis 6.2.14: calls fail. Upgrade to Redis 7 or Valkey"},
		{"redis_version:unstable", "version", bad, "Redis unstable: calls fail"},
		{"redis_version:10.0.0", "version", fine, "Redis 10.0.0"},
		{"redis_version:7.2.4\r\nvalkey_version:8.1.0", "version", fine, "Valkey 8.1.0"},
		{"aof_enabled:1\r\naof_last_write_status:err", "persistence", bad, "the append-only file cannot be written: the server refuses writes"},
	} {
		s := &server{info: redisinfo.Fields(test.info)}
		found := map[string]finding{"version": checkVersion(t.Context(), s), "persistence": checkPersistence(t.Context(), s)}
		requireFinding(t, found, test.check, test.status, test.text)
	}
}

// A failed snapshot stops writes.
func TestDoctorOfAFullDisk(t *testing.T) {
	server := redistest.Start(t, "--save", "3600 1", "--enable-protected-configs", "yes")
	server.Do("CONFIG SET dir /proc") // nothing can be written there
	server.Do("SET k v")
	server.Do("BGSAVE")
	server.WaitFor("INFO persistence", "rdb_last_bgsave_status:err")
	found, _ := examined(t, server.Addr)
	requireFinding(t, found, "persistence", bad, "the last snapshot failed")
	requireFinding(t, found, "ready", bad, "cannot save its data")
}

func TestDoctorOfReplicas(t *testing.T) {
	master, replica := redistest.Start(t, "--min-replicas-to-write", "1"), redistest.Start(t)
	host, port, _ := strings.Cut(master.Addr, ":")
	replica.Do("REPLICAOF " + host + " " + port)
	master.WaitFor("INFO replication", "min_slaves_good_slaves:1")
	found, _ := examined(t, master.Addr)
	requireFinding(t, found, "replicas", fine, "1: a failover may lose")
	master.Do("CONFIG SET min-replicas-to-write 0")
	found, _ = examined(t, master.Addr)
	requireFinding(t, found, "replicas", fine, "a master that is cut off goes on deciding")
}

// A test cannot change the clock of the machine, so this one tests the arithmetic.
func TestDoctorOfClocks(t *testing.T) {
	sent := time.Now()
	for ahead, want := range map[time.Duration]string{
		0: fine, 400 * time.Millisecond: fine, -400 * time.Millisecond: fine, 2 * time.Second: "2s ahead of", -time.Hour: "1h behind",
	} {
		for took := range 3 {
			d := time.Duration(took) * 10 * time.Millisecond
			f := skew(sent.Add(ahead+d/2), sent, d)
			if got := f.Status + " " + f.Found; !strings.Contains(got, want) || (f.Status == fine) != (want == fine) {
				t.Errorf("%s ahead: got %+v", ahead, f)
			}
		}
	}
}

func TestDoctorOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, "--appendonly", "yes", "--slowlog-log-slower-than", "1000000")
	text, status := ctl(t, cluster[0].Addr, "doctor")
	if status != done || strings.Count(text, "\n") != 2+3*(len(checks)-1) || strings.Contains(text, warn) {
		t.Errorf("status %d:\n%s", status, text)
	}
	for _, server := range cluster {
		if !strings.Contains(text, server.Addr) {
			t.Errorf("%s is not there:\n%s", server.Addr, text)
		}
	}
	cluster[0].Do("ACL SETUSER default -cluster|info")
	cluster[1].Do("CONFIG SET maxmemory-policy allkeys-lfu")
	cluster[2].Do("CLUSTER DELSLOTS 16383")
	cluster[2].WaitFor("CLUSTER INFO", "cluster_state:fail")
	text, status = ctl(t, cluster[0].Addr, "doctor")
	for _, want := range []string{
		"?     " + cluster[0].Addr + "  cluster", "warn  " + cluster[1].Addr + "  eviction", "bad   " + cluster[2].Addr + "  cluster",
		"state fail, 16383 of 16384", "all calls fail",
	} {
		if status != failed || !strings.Contains(text, want) {
			t.Errorf("status %d, no %q:\n%s", status, want, text)
		}
	}
}

func TestDoctorOfAServerThatIsDown(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	text, status := ctl(t, server.Addr, "doctor")
	if status != failed || !strings.Contains(text, "cannot be reached: check the address") || strings.Contains(text, "ratelimitctl doctor") {
		t.Errorf("status %d: %s", status, text)
	}
}

// doctor does not take a prefix for a pattern.
func TestDoctorLooksUnderThePrefix(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	for _, k := range []string{"a*:x:{y}:1m", "ab:x:{y}:1m", "a*b"} {
		if err := client.Set(t.Context(), k, "", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	found, _ := examined(t, server.Addr, "-prefix", "a*")
	requireFinding(t, found, "ready", fine, "no process has said within a day that it has rules")
	requireFinding(t, found, "expiry", fine, "all of 1 keys expire")
}

// Settings that cannot be read do not stop any call. doctor reports them.
func TestUnreadableSettings(t *testing.T) {
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	if err := f.Overrides().Set(t.Context(), "good", ratelimit.Override{Limit: new(int64(1))}); err != nil {
		t.Fatal(err)
	}
	f.client.HSet(t.Context(), "ratelimit.fleet:{ratelimit}:settings", "override:login", `{"limits":1}`)
	f.client.ZAdd(t.Context(), "ratelimit.fleet:{ratelimit}:versions", redis.Z{Score: 2, Member: "override:login"})
	f.client.Set(t.Context(), "ratelimit.fleet:{ratelimit}:version", 2, 0)
	found, status := examined(t, server.Addr)
	requireFinding(t, found, "ready", fine, "")
	requireFinding(t, found, "settings", warn, `unknown field "limits"`)
	if status != done {
		t.Errorf("doctor ends with status %d", status)
	}
	text, status := ctl(t, server.Addr, "override", "list")
	if status != failed || !strings.Contains(text, "good  all  limit=1") || !strings.Contains(text, "limits") {
		t.Errorf("status %d: %s", status, text)
	}
	require(t, server.Addr, done, "→ no override", "override", "clear", "login", "-force")
	require(t, server.Addr, done, "good", "override", "list")
}
