package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
)

// oldest is the first version of Redis that supports the script.
const oldest = 7

func checkVersion(_ context.Context, s *server) finding {
	if s.info == nil {
		return unknown("version", "+info")
	}
	f := finding{Status: fine, Check: "version", Found: "Redis " + s.info["redis_version"]}
	if valkey := s.info["valkey_version"]; valkey != "" {
		f.Found = "Valkey " + valkey
	}
	major, _, _ := strings.Cut(s.info["redis_version"], ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldest {
		f.Status, f.Meaning, f.Advice = bad, "calls fail", "Upgrade to Redis 7 or Valkey"
	}
	return f
}

func checkEviction(_ context.Context, s *server) finding {
	if s.info == nil {
		return unknown("eviction", "+info")
	}
	policy := s.info["maxmemory_policy"]
	f := finding{Status: fine, Check: "eviction", Found: "maxmemory-policy " + policy}
	switch {
	case policy == "noeviction":
		f.Meaning = "counts stay until they expire"
	case strings.HasPrefix(policy, "allkeys-"):
		f.Status, f.Meaning = warn, "when the memory is full, counts, overrides, blocks and pauses are removed, and callers have their whole limits again"
	default:
		f.Status, f.Meaning = warn, "when the memory is full, counts are removed, since they expire, and callers have their whole limits again"
	}
	if f.Status == warn {
		f.Advice = "Set noeviction, or give the counts a server of their own"
	}
	return f
}

// fullAt is the share of maxmemory from which the server counts as nearly full.
const fullAt = 0.9

func checkMemory(_ context.Context, s *server) finding {
	if s.info == nil {
		return unknown("memory", "+info")
	}
	used, most := redisinfo.Number(s.info, "used_memory"), redisinfo.Number(s.info, "maxmemory")
	f := finding{Status: fine, Check: "memory", Found: bytesInWords(used) + " used, no maxmemory", Meaning: "the server grows as long as the machine has memory"}
	if most > 0 {
		f.Found = fmt.Sprintf("%s of %s used", bytesInWords(used), bytesInWords(most))
		f.Meaning = "counts are removed when it is full"
		if s.info["maxmemory_policy"] == "noeviction" {
			f.Meaning = "calls fail when it is full"
		}
		if float64(used) > fullAt*float64(most) {
			f.Status, f.Advice = warn, "Raise maxmemory"
			if used >= most && s.info["maxmemory_policy"] == "noeviction" {
				f.Status = bad
			}
		}
	}
	return f
}

func checkPersistence(_ context.Context, s *server) finding {
	if s.info == nil {
		return unknown("persistence", "+info")
	}
	f := finding{Check: "persistence", Status: fine}
	appends, saves := s.info["aof_enabled"] == "1", s.config["save"] != ""
	switch {
	case appends && s.info["aof_last_write_status"] != "ok":
		f.Found, f.Status, f.Meaning, f.Advice = "the append-only file cannot be written", bad, "the server refuses writes, and calls fail", "Make room on its disk"
	case s.info["rdb_last_bgsave_status"] != "ok" && s.config["stop-writes-on-bgsave-error"] != "no":
		f.Found, f.Status, f.Meaning, f.Advice = "the last snapshot failed", bad, "the server refuses writes, and calls fail", "Make room on its disk, or set stop-writes-on-bgsave-error no"
	case appends && s.config["appendfsync"] == "always":
		f.Found, f.Status, f.Meaning, f.Advice = "appendonly with appendfsync always", warn, "each decision waits for the disk", "Set appendfsync everysec"
	case appends:
		f.Found, f.Meaning = "appendonly", "after a crash about a second of counts is missing"
	case s.config == nil:
		return unknown("persistence", "+config|get")
	case saves:
		f.Found, f.Meaning = "snapshots only", "after a crash the counts are those of the last snapshot"
	default:
		f.Found, f.Status, f.Meaning = "none", warn, "after a restart all callers have their whole limits again, and overrides, blocks and pauses are gone"
		f.Advice = "Set appendonly yes, unless that is acceptable"
	}
	return f
}

func checkReplicas(_ context.Context, s *server) finding {
	if s.info == nil {
		return unknown("replicas", "+info")
	}
	f := finding{Check: "replicas", Status: fine}
	there, good, least := redisinfo.Number(s.info, "connected_slaves"), redisinfo.Number(s.info, "min_slaves_good_slaves"), redisinfo.Number(s.config, "min-replicas-to-write")
	switch {
	case s.info["role"] == "slave":
		f.Found, f.Status, f.Meaning = "this server is a replica", bad, "calls fail"
		f.Advice = fmt.Sprintf("Connect to its master %s:%s", s.info["master_host"], s.info["master_port"])
	case least > 0 && good < least:
		f.Found, f.Status = fmt.Sprintf("%d, and min-replicas-to-write %d", good, least), bad
		f.Meaning, f.Advice = "the server refuses writes, and calls fail", "Start replicas, or lower min-replicas-to-write"
	case there == 0:
		f.Found, f.Meaning = "none", "while this server is down, failure policies decide"
	default:
		f.Found, f.Meaning = fmt.Sprint(there), "a failover may lose the last moment's counts"
		if least == 0 && s.config != nil {
			f.Meaning += "; min-replicas-to-write is 0, so a master that is cut off goes on deciding"
		}
	}
	return f
}

// maxSkew is how far apart the clocks of a server and of this machine may be.
const maxSkew = 500 * time.Millisecond

func checkClock(ctx context.Context, s *server) finding {
	sent := time.Now()
	at, err := s.Time(ctx).Result()
	took := time.Since(sent)
	if err != nil {
		return unknown("clock", "+time")
	}
	return skew(at, sent, took)
}

// skew returns the finding about the clocks. The server replied with its time at, the command was sent at sent, and the reply took took.
func skew(at, sent time.Time, took time.Duration) finding {
	ahead := at.Sub(sent.Add(took / 2))
	f := finding{Status: fine, Check: "clock", Found: "less than " + maxSkew.String() + " from this machine's"}
	if off := ahead.Abs() - took/2; off > maxSkew {
		f.Found, f.Status = aheadInWords(ahead.Round(time.Millisecond))+" this machine's", warn
		f.Meaning = "limits, overrides, blocks and pauses go by the server's clock, but logs and this tool's times may not fit together"
		f.Advice = "Synchronize both by NTP"
	}
	return f
}

func checkCluster(ctx context.Context, s *server) finding {
	if !s.tool.isCluster() {
		return finding{}
	}
	text, err := s.ClusterInfo(ctx).Result()
	if err != nil {
		return unknown("cluster", "+cluster|info")
	}
	info := redisinfo.Fields(text)
	f := finding{Status: fine, Check: "cluster", Found: fmt.Sprintf("%s masters, all %s slots served", info["cluster_size"], info["cluster_slots_ok"])}
	if info["cluster_state"] != "ok" || info["cluster_slots_ok"] != "16384" {
		f.Status, f.Found = bad, fmt.Sprintf("state %s, %s of 16384 slots served", info["cluster_state"], info["cluster_slots_ok"])
		f.Meaning, f.Advice = "calls of keys in the other slots fail", "Start the servers that CLUSTER NODES shows as failed"
		if s.config["cluster-require-full-coverage"] == "yes" {
			f.Meaning = "all calls fail, since cluster-require-full-coverage is yes"
		}
		return f
	}
	if timeout := s.config["cluster-node-timeout"]; timeout != "" {
		f.Meaning = "a master that is lost is replaced after cluster-node-timeout " + timeout + " ms at the earliest; limiters ask for the new layout at once when " +
			"a server does not answer, and else once a minute"
	}
	return f
}

func bytesInWords(n int64) string {
	if n < 1<<20 {
		return fmt.Sprintf("%.1f kB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
}
