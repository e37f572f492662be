package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// found is what doctor finds and prints.
type found struct {
	problems []problem
	facts    string
	status   int
}

// problem is a problem in JSON.
type problem struct{ ID, Level, Text, Advice string }

// examined returns what doctor says of a prefix.
func examined(t *testing.T, addr string, args ...string) (f found) {
	t.Helper()
	text, status := ctl(t, addr, append([]string{"-json"}, append(args, "doctor")...)...)
	if err := json.NewDecoder(strings.NewReader(text)).Decode(&f.problems); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	f.status = status
	f.facts, _ = ctl(t, addr, append(args, "doctor")...)
	for _, p := range f.problems {
		if p.ID == "" || p.Text == "" || p.Advice == "" {
			t.Errorf("it does not say what it means and what to do: %+v", p)
		}
	}
	return f
}

// require checks that there is a problem of an ID and a level with a text, which is what also the table shows.
func (f found) require(t *testing.T, id string, level operate.Level, text string) {
	t.Helper()
	for _, p := range f.problems {
		if p.ID == id && p.Level == level.String() && strings.Contains(p.Text+". To do: "+p.Advice, text) {
			return
		}
	}
	t.Errorf("no %s, %s, %q in %+v", level, id, text, f.problems)
}

// requireFact checks that doctor prints a fact, which is no problem.
func (f found) requireFact(t *testing.T, check, text string) {
	t.Helper()
	for line := range strings.Lines(f.facts) {
		if strings.Contains(line, "  "+check+"  ") && strings.Contains(line, text) {
			return
		}
	}
	t.Errorf("no %s, %q in\n%s", check, text, f.facts)
}

// A healthy server has no problem, and neither have its processes.
func TestDoctorOfAHealthyServer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--slowlog-log-slower-than", "1000000")
	f := newFleet(t, server.Addr)
	f.allow(3, ratelimit.Rule{Name: "login", Limit: 5, Per: time.Hour}, "ann")
	f.allow(3, ratelimit.Rule{Name: "search", Limit: 5, Per: time.Hour, Algorithm: ratelimit.TokenBucket}, "ann")
	f.waitUntilSeen(t)
	found := examined(t, server.Addr)
	if len(found.problems) != 0 || found.status != done {
		t.Errorf("status %d, %+v", found.status, found.problems)
	}
	found.requireFact(t, "keys", "login 1 key of ")
	found.requireFact(t, "keys", "bytes (bucket:1h)")
	found.requireFact(t, "expiry", "all of 2 keys expire")
	found.requireFact(t, "version", "Redis ")
	if !strings.HasPrefix(found.facts, "All is well.\n") {
		t.Errorf("got %s", found.facts)
	}
}

// doctor finds each bad setting on a real server.
func TestDoctorFindsBadSettings(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		args     []string // for the server
		commands []string // to the server
		id       string
		level    operate.Level
		text     string
	}{
		{"allkeys", []string{"--maxmemory-policy", "allkeys-lru"}, nil, operate.Evicts, operate.Warning, "overrides, blocks and pauses are removed"},
		{"volatile", []string{"--maxmemory-policy", "volatile-ttl"}, nil, operate.Evicts, operate.Warning, "callers have their whole limits again"},
		{"nearly full", []string{"--maxmemory", "60mb"}, []string{"SETRANGE big 52000000 x"}, operate.MemoryFull, operate.Warning, "calls fail when it is full. To do: raise maxmemory"},
		{"full", []string{"--maxmemory", "1kb"}, nil, operate.MemoryFull, operate.Bad, "calls fail"},
		{"always", []string{"--appendonly", "yes", "--appendfsync", "always"}, nil, operate.StoreSlow, operate.Note, "waits for the disk"},
		{"replica", nil, []string{"REPLICAOF 127.0.0.1 1"}, operate.StoreDown, operate.Bad, "connect to its master 127.0.0.1:1"},
		{"too few replicas", []string{"--min-replicas-to-write", "1"}, nil, operate.StoreDown, operate.Bad, "the server refuses writes"},
		{"slow", []string{"--slowlog-log-slower-than", "0"}, []string{"SET s3cret s3cret"}, operate.StoreSlow, operate.Note, "within an hour, the last "},
		{"latency", []string{"--latency-monitor-threshold", "10", "--enable-debug-command", "yes"}, []string{"DEBUG SLEEP 0.05"}, operate.StoreSlow, operate.Warning, "ms within an hour, the last "},
		{"no EVAL", nil, []string{"ACL SETUSER default -eval"}, operate.StoreDown, operate.Bad, "calls that need this fail"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, test.args...)
			for _, command := range test.commands {
				server.Do(command)
			}
			found := examined(t, server.Addr)
			found.require(t, test.id, test.level, test.text)
			if strings.Contains(fmt.Sprint(found), "s3cret") {
				t.Errorf("it shows arguments of commands: %+v", found)
			}
			isBad := slices.ContainsFunc(found.problems, func(p problem) bool { return p.Level == operate.Bad.String() })
			if (found.status == failed) != isBad {
				t.Errorf("status %d of %+v", found.status, found.problems)
			}
		})
	}
}

// What is worth knowing of a server and no problem stands below the problems.
func TestDoctorPrintsFacts(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		args     []string // for the server
		commands []string // to the server
		check    string
		text     string
	}{
		{"no persistence", nil, nil, "persistence", "overrides, blocks and pauses are lost"},
		{"snapshots", []string{"--save", "3600 1"}, nil, "persistence", "snapshots only"},
		{"lasting key", nil, []string{"SET ratelimit:x:{y}:1m z"}, "expiry", "1 of 1 key do not expire, such as ratelimit:x:{y}:1m"},
		{"no INFO", nil, []string{"ACL SETUSER default -info"}, "not asked", "+info"},
		{"no CONFIG", nil, []string{"ACL SETUSER default -config"}, "not asked", "+config|get"},
		{"no SLOWLOG", nil, []string{"ACL SETUSER default -slowlog"}, "not asked", "+slowlog|get"},
		{"no LATENCY", nil, []string{"ACL SETUSER default -latency"}, "not asked", "+latency|latest"},
		{"no ACL LOG", nil, []string{"ACL SETUSER default -acl|log"}, "not asked", "+acl|log"},
		{"no keys", nil, []string{"HSET ratelimit.fleet:{ratelimit}:settings a b", "SET ratelimits z"}, "keys", "no counts of prefix ratelimit"},
		{"another prefix", nil, []string{"SET ratelimit:eu:x:{y}:1m z EX 99"}, "keys", "no counts of prefix ratelimit"},
		{"no MEMORY", nil, []string{"SET ratelimit:x:{y}:1m z EX 99", "ACL SETUSER default -memory"}, "keys", "+memory|usage"},
		{"no PTTL", nil, []string{"SET ratelimit:x:{y}:1m z", "ACL SETUSER default -pttl"}, "keys", "+pttl"},
		{"no SCAN", nil, []string{"ACL SETUSER default -scan"}, "keys", "+scan"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, test.args...)
			for _, command := range test.commands {
				server.Do(command)
			}
			examined(t, server.Addr).requireFact(t, test.check, test.text)
		})
	}
}

// A failed snapshot stops writes.
func TestDoctorOfAFullDisk(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--save", "3600 1", "--enable-protected-configs", "yes")
	server.Do("CONFIG SET dir /proc") // nothing can be written there
	server.Do("SET k v")
	server.Do("BGSAVE")
	server.WaitFor("INFO persistence", "rdb_last_bgsave_status:err")
	found := examined(t, server.Addr)
	found.require(t, operate.StoreDown, operate.Bad, "the last snapshot failed")
}

func TestDoctorOfReplicas(t *testing.T) {
	t.Parallel()
	master, replica := redistest.Start(t, "--min-replicas-to-write", "1"), redistest.Start(t)
	host, port, _ := strings.Cut(master.Addr, ":")
	replica.Do("REPLICAOF " + host + " " + port)
	master.WaitFor("INFO replication", "min_slaves_good_slaves:1")
	examined(t, master.Addr).requireFact(t, "replicas", "1: a failover may lose")
	master.Do("CONFIG SET min-replicas-to-write 0")
	examined(t, master.Addr).requireFact(t, "replicas", "a master that is cut off goes on deciding")
}

func TestDoctorOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, "--slowlog-log-slower-than", "1000000")
	text, status := ctl(t, cluster[0].Addr, "doctor")
	if status != done || strings.Contains(text, "  evicts  ") {
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
		cluster[0].Addr + "  not asked", "evicts      " + cluster[1].Addr, "store-down  " + cluster[2].Addr, "state fail, 16383 of 16384", "all calls fail",
	} {
		if status != failed || !strings.Contains(text, want) {
			t.Errorf("status %d, no %q:\n%s", status, want, text)
		}
	}
}

func TestDoctorOfAServerThatIsDown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	server.Stop()
	text, status := ctl(t, server.Addr, "doctor")
	if status != failed || !strings.Contains(text, "cannot be reached: check the address") || strings.Contains(text, "ratelimitctl doctor") {
		t.Errorf("status %d: %s", status, text)
	}
}

// doctor does not take a prefix for a pattern.
func TestDoctorLooksUnderThePrefix(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	for _, k := range []string{"a*:x:{y}:1m", "ab:x:{y}:1m", "a*b"} {
		if err := client.Set(t.Context(), k, "", time.Minute).Err(); err != nil {
			t.Fatal(err)
		}
	}
	examined(t, server.Addr, "-prefix", "a*").requireFact(t, "expiry", "all of 1 key expire")
}

// Settings that cannot be read do not stop any call. doctor reports them.
func TestUnreadableSettings(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	f := newFleet(t, server.Addr)
	if err := f.Overrides().Set(t.Context(), "good", ratelimit.Override{Limit: new(int64(1))}); err != nil {
		t.Fatal(err)
	}
	f.client.HSet(t.Context(), "ratelimit.fleet:{ratelimit}:settings", "override:login", `{"limits":1}`)
	f.client.ZAdd(t.Context(), "ratelimit.fleet:{ratelimit}:versions", redis.Z{Score: 2, Member: "override:login"})
	f.client.Set(t.Context(), "ratelimit.fleet:{ratelimit}:version", 2, 0)
	found := examined(t, server.Addr)
	found.require(t, operate.SettingUnusable, operate.Warning, `unknown field "limits"`)
	if found.status != done {
		t.Errorf("doctor ends with status %d", found.status)
	}
	text, status := ctl(t, server.Addr, "override", "list")
	if status != failed || !strings.Contains(text, "good  all  limit=1") || !strings.Contains(text, "limits") {
		t.Errorf("status %d: %s", status, text)
	}
	require(t, server.Addr, done, "→ no override", "override", "clear", "login", "-force")
	require(t, server.Addr, done, "good", "override", "list")
}

// doctor does not say that all is well with a prefix that was mistyped.
func TestDoctorOfAMistypedPrefix(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"login": ruleText(login)})
	require(t, server.Addr, failed, `no program uses prefix "ratelimti"; on this server there is ratelimit`, "-prefix", "ratelimti", "doctor")
}
