package operate

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// judge judges one server, and notes what is worth knowing of it.
func (s *server) judge(f *findings) {
	if s.err != nil {
		f.storeError(s.name, "the store does not answer: "+s.err.Error(), "check whether it runs, and its address and password", s.err.Error())
		return
	}
	defer s.judgeReady(f) // the other findings say more
	if s.info != nil {
		s.judgeVersion(f)
		s.judgeMemory(f)
		s.judgeGrowth(f)
		s.judgePersistence(f)
		s.judgeReplicas(f)
		s.judgeErrors(f)
	}
	if s.isCluster() {
		s.judgeCluster(f)
	}
	s.judgeClock(f)
	s.judgeSlow(f)
	s.judgeDenied(f)
	if len(s.hidden) > 0 {
		f.fact(s, "not asked", "this user may not ask for all: permit "+strings.Join(slices.Compact(s.hidden), " "))
	}
}

// judgeReady says why calls cannot be decided.
func (s *server) judgeReady(f *findings) {
	if s.ready != nil {
		text := strings.TrimSuffix(strings.TrimPrefix(s.ready.Error(), "store: "), ".")
		text = strings.Replace(text, `: ask "ratelimitctl doctor" which servers fail`, "", 1) // this is the answer
		f.storeError(s.name, text, "calls that need this fail: permit what ratelimitctl acl prints, or mend the server", s.ready.Error())
	}
}

func (f *findings) fact(s *server, check, text string) {
	f.facts = append(f.facts, Fact{s.name, check, text})
}

// oldest is the first version of Redis that supports the script.
const oldest = 7

func (s *server) judgeVersion(f *findings) {
	text := "Redis " + s.info["redis_version"]
	if valkey := s.info["valkey_version"]; valkey != "" {
		text = "Valkey " + valkey
	}
	f.fact(s, "version", text)
	major, _, _ := strings.Cut(s.info["redis_version"], ".")
	if n, err := strconv.Atoi(major); err != nil || n < oldest {
		f.add(StoreDown, Bad, s.name, text+" is too old: calls fail", "upgrade to Redis 7 or Valkey")
	}
}

// fullAt is the share of maxmemory from which the server counts as nearly full.
const fullAt = 0.9

func (s *server) judgeMemory(f *findings) {
	used, most, policy := redisinfo.Number(s.info, "used_memory"), redisinfo.Number(s.info, "maxmemory"), s.info["maxmemory_policy"]
	text := Bytes(used) + " used, no maxmemory"
	if most > 0 {
		text = fmt.Sprintf("%s of %s used", Bytes(used), Bytes(most))
	}
	f.fact(s, "memory", text+", "+policy)
	switch isFull := most > 0 && float64(used) > fullAt*float64(most); {
	case isFull && policy == "noeviction" && used >= most:
		f.add(MemoryFull, Bad, s.name, text+": calls fail", "raise maxmemory")
	case isFull && policy == "noeviction":
		f.add(MemoryFull, Warning, s.name, text+": calls fail when it is full", "raise maxmemory")
	}
	evicted := int64(0)
	if before := s.justBefore(); before != nil {
		evicted = redisinfo.Number(s.info, "evicted_keys") - redisinfo.Number(before.info, "evicted_keys")
	}
	const advice = "set noeviction, or give the counts a server of their own"
	switch {
	case evicted > 0:
		f.add(Evicts, Warning, s.name, fmt.Sprintf("%s were removed just now, because the memory is full: callers have their whole limits again", Count(evicted, "key")), "raise maxmemory, and "+advice)
	case strings.HasPrefix(policy, "allkeys-"):
		f.add(Evicts, Warning, s.name, "maxmemory-policy "+policy+": when the memory is full, counts, overrides, blocks and pauses are removed", advice)
	case policy != "noeviction":
		f.add(Evicts, Warning, s.name, "maxmemory-policy "+policy+": when the memory is full, counts are removed, and callers have their whole limits again", advice)
	}
}

// judgeGrowth says how fast keys and memory grew since the server was asked before.
func (s *server) judgeGrowth(f *findings) {
	before := s.justBefore()
	if before == nil {
		return
	}
	seconds := s.at.Sub(before.at).Seconds()
	grown := func(name string) float64 {
		return float64(redisinfo.Number(s.info, name)-redisinfo.Number(before.info, name)) / seconds
	}
	memory, keys := grown("used_memory_dataset"), float64(keyCount(s.info)-keyCount(before.info))/seconds
	f.fact(s, "growth", fmt.Sprintf("%s and %s a second", Count(int64(math.Round(keys)), "key"), Bytes(int64(memory))))
	left := float64(redisinfo.Number(s.info, "maxmemory") - redisinfo.Number(s.info, "used_memory"))
	if left > 0 && memory > 0 && keys > 0 && left/memory < recent.Seconds() {
		f.add(MemoryFull, Warning, s.name, fmt.Sprintf("at this rate the memory is full in %.0f minutes", left/memory/60),
			"find out by ratelimitctl top who makes the keys, or raise maxmemory")
	}
}

// keyCount returns the number of keys in all databases.
func keyCount(info map[string]string) (n int64) {
	for name, value := range info {
		if _, err := strconv.Atoi(strings.TrimPrefix(name, "db")); err == nil && strings.HasPrefix(name, "db") {
			n += redisinfo.Number(redisinfo.List(value), "keys")
		}
	}
	return n
}

func (s *server) judgePersistence(f *findings) {
	const refuses = ": the server refuses writes, and calls fail"
	appends := s.info["aof_enabled"] == "1"
	switch {
	case appends && s.info["aof_last_write_status"] != "ok":
		f.add(StoreDown, Bad, s.name, "the append-only file cannot be written"+refuses, "make room on its disk")
	case s.info["rdb_last_bgsave_status"] != "ok" && s.config["stop-writes-on-bgsave-error"] != "no":
		f.add(StoreDown, Bad, s.name, "the last snapshot failed"+refuses, "make room on its disk, or set stop-writes-on-bgsave-error no")
	case appends && s.config["appendfsync"] == "always":
		f.add(StoreSlow, Note, s.name, "appendonly with appendfsync always: each decision waits for the disk", "set appendfsync everysec")
	}
	switch {
	case appends:
		f.fact(s, "persistence", "appendonly: after a crash about a second of counts is missing")
	case s.config == nil:
	case s.config["save"] != "":
		f.fact(s, "persistence", "snapshots only: after a crash the counts are those of the last snapshot")
	default:
		f.fact(s, "persistence", "none: after a restart all callers have their whole limits again, and overrides, blocks and pauses are lost. "+
			"Set appendonly yes, unless that is acceptable")
	}
}

func (s *server) judgeReplicas(f *findings) {
	there, least := redisinfo.Number(s.info, "connected_slaves"), redisinfo.Number(s.config, "min-replicas-to-write")
	good := redisinfo.Number(s.info, "min_slaves_good_slaves")
	switch {
	case s.info["role"] == "slave":
		f.add(StoreDown, Bad, s.name, "this server is a replica: calls fail", fmt.Sprintf("connect to its master %s:%s", s.info["master_host"], s.info["master_port"]))
	case least > 0 && good < least:
		f.add(StoreDown, Bad, s.name, fmt.Sprintf("%s, and min-replicas-to-write is %d: the server refuses writes, and calls fail", Count(good, "replica"), least),
			"start replicas, or lower min-replicas-to-write")
	case there == 0:
		f.fact(s, "replicas", "none: while this server is down, failure policies decide")
	default:
		text := fmt.Sprintf("%d: a failover may lose the last moment's counts", there)
		if least == 0 && s.config != nil {
			text += "; min-replicas-to-write is 0, so a master that is cut off goes on deciding"
		}
		f.fact(s, "replicas", text)
	}
}

func (s *server) judgeClock(f *findings) {
	if s.ahead.Abs() <= maxSkew {
		f.fact(s, "clock", "less than "+maxSkew.String()+" from this machine's")
		return
	}
	f.add(ClockOff, Warning, s.name, fmt.Sprintf("the server's clock is %s this machine's: limits and settings go by the server's clock, but logs and times here may not fit together",
		Ahead(s.ahead.Round(time.Millisecond))), "synchronize both by NTP")
}

func (s *server) judgeCluster(f *findings) {
	if s.info["cluster_state"] == "" {
		return // the user may not ask
	}
	if s.info["cluster_state"] != "ok" || s.info["cluster_slots_ok"] != "16384" {
		what := "calls of keys in the other slots fail"
		if s.config["cluster-require-full-coverage"] == "yes" {
			what = "all calls fail, since cluster-require-full-coverage is yes"
		}
		f.add(StoreDown, Bad, s.name, fmt.Sprintf("state %s, %s of 16384 slots served: %s", s.info["cluster_state"], s.info["cluster_slots_ok"], what),
			"start the servers that CLUSTER NODES shows as failed")
		return
	}
	text := fmt.Sprintf("%s masters, all %s slots served", s.info["cluster_size"], s.info["cluster_slots_ok"])
	if timeout := s.config["cluster-node-timeout"]; timeout != "" {
		text += ": a master that is lost is replaced after cluster-node-timeout " + timeout + " ms at the earliest; limiters ask for the new layout at once when " +
			"a server does not answer, and else once a minute"
	}
	f.fact(s, "cluster", text)
	if n := s.errorsSince("MOVED"); n > 0 {
		f.add(StoreDown, Warning, s.name, fmt.Sprintf("%s just now for keys of other servers: perhaps a client knows only one server", Count(n, "command")),
			"make it with redis.NewClusterClient")
	}
}

// trips are the last round trips of commands to the server that has the settings.
type trips struct {
	mu   sync.Mutex
	last []time.Duration
}

const (
	keptTrips  = 120
	slowTrip   = 20 * time.Millisecond  // at the median
	lateTrip   = 250 * time.Millisecond // the timeout of decisions
	manyLate   = 0.05                   // the share of late ones that is not by chance
	leastLate  = 3                      // how many must be late, as one may be so by chance
	leastTrips = 5                      // how many must be known for their median to count
)

func (t *trips) add(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, d)
	t.last = t.last[max(0, len(t.last)-keptTrips):]
}

func (t *trips) sorted() []time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Sorted(slices.Values(t.last))
}

// judge judges the round trips.
func (t *trips) judge(f *findings) {
	trips := t.sorted()
	if len(trips) == 0 {
		return
	}
	at := func(share float64) time.Duration {
		return trips[int(share*float64(len(trips)-1))].Round(10 * time.Microsecond)
	}
	text := fmt.Sprintf("median %v, 99%% %v, longest %v of %d", at(0.5), at(0.99), at(1), len(trips))
	f.facts = append(f.facts, Fact{"", "round trip", text})
	inTime, _ := slices.BinarySearch(trips, lateTrip)
	late := len(trips) - inTime
	switch {
	case late >= leastLate && float64(late) > manyLate*float64(len(trips)):
		f.add(StoreSlow, Bad, "", fmt.Sprintf("round trip %s: %d took longer than the %v that decisions wait, and such calls fail", text, late, lateTrip),
			"see SLOWLOG GET on the server, and the network between")
	case len(trips) >= leastTrips && at(0.5) > slowTrip:
		f.add(StoreSlow, Warning, "", "round trip "+text+": each call waits so long", "run the programs near the server")
	}
}

// judgeSlow names what held the server up.
func (s *server) judgeSlow(f *findings) {
	if n := len(s.slow); n > 0 {
		slowest := slices.MaxFunc(s.slow, func(a, b slowCommand) int { return cmp.Compare(a.took, b.took) })
		level := Note
		if slowest.took > lateTrip {
			level = Warning
		}
		latest := slices.MinFunc(s.slow, func(a, b slowCommand) int { return cmp.Compare(a.age, b.age) }).age
		f.add(StoreSlow, level, s.name, fmt.Sprintf("%s within an hour, the last %s, the slowest %s of %v: meanwhile all calls waited", Count(n, "slow command"),
			Ago(latest), slowest.name, slowest.took.Round(time.Millisecond)), "see SLOWLOG GET, and give the counts a server of their own")
	}
	var texts []string
	for _, e := range s.events {
		texts = append(texts, fmt.Sprintf("%s %v", e.name, e.most))
	}
	if texts != nil {
		latest := slices.MinFunc(s.events, func(a, b event) int { return cmp.Compare(a.age, b.age) }).age
		f.add(StoreSlow, Warning, s.name, strings.Join(texts, ", ")+" within an hour, the last "+Ago(latest)+": meanwhile all calls waited", "see LATENCY DOCTOR")
	}
}

// justNow is how far back it is said of what a server counts that it was just now.
const justNow = time.Minute

// justBefore returns what the server said of itself last time, or nil if it did not, or if that is long ago.
func (s *server) justBefore() *server {
	if s.before == nil || s.before.info == nil || s.at.Sub(s.before.at) > justNow {
		return nil
	}
	return s.before
}

// errorCount returns how often the server replied with errors of a kind since it started.
func (s *server) errorCount(kind string) int64 {
	return redisinfo.Number(redisinfo.List(s.info["errorstat_"+kind]), "count")
}

// errorsSince returns how often it did since it was asked before. What it denied this look does not count.
func (s *server) errorsSince(kind string) int64 {
	before := s.justBefore()
	if before == nil {
		return 0
	}
	n := s.errorCount(kind) - before.errorCount(kind)
	if kind == "NOPERM" {
		n -= before.own
	}
	return max(0, n)
}

// judgeErrors names the errors that the server replied with just now.
func (s *server) judgeErrors(f *findings) {
	var texts []string
	for _, kind := range []string{"WRONGPASS", "NOPERM", "NOAUTH", "BUSY"} {
		if n := s.errorsSince(kind); n > 0 {
			texts = append(texts, fmt.Sprintf("%s %s", Number(n), kind))
		}
	}
	if texts != nil {
		f.add(StoreDown, Warning, s.name, "just now the server replied with "+strings.Join(texts, ", ")+": commands of some client fail", "see ACL LOG, and the logs of the programs")
	}
}

// shownDenials is how many users and commands are named.
const shownDenials = 5

func (s *server) judgeDenied(f *findings) {
	by := map[string]int64{}
	for _, d := range s.denied {
		by[d.user+" "+d.what] += d.times
	}
	if len(by) == 0 {
		return
	}
	var all []string
	for who := range by {
		all = append(all, who)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(by[b], by[a]), strings.Compare(a, b)) })
	var texts []string
	for _, who := range all[:min(len(all), shownDenials)] {
		texts = append(texts, fmt.Sprintf("%s (%d)", who, by[who]))
	}
	if more := len(all) - shownDenials; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	latest := slices.MinFunc(s.denied, func(a, b denial) int { return cmp.Compare(a.age, b.age) }).age
	f.add(StoreDown, Warning, s.name, "the server denied within an hour, the last "+Ago(latest)+": "+strings.Join(texts, ", ")+". Calls of programs with that user may fail",
		"see ACL LOG, check the password, and permit what ratelimitctl acl prints")
	f.deniedNow = f.deniedNow || latest <= time.Minute
}

// blameDenials makes it bad that no process reports, if servers deny users something meanwhile.
func (f *findings) blameDenials(processes []fleet.Process, rules []ratelimit.UsedRule, known bool) {
	if !known || len(processes) > 0 || len(rules) == 0 {
		return
	}
	if f.deniedNow {
		f.add(StoreDown, Bad, "", "rules are in use, but no process can write, and the server refused users within the last minute: calls fail",
			"check the programs' user and password, and see ACL LOG")
		return
	}
	f.add(StoreDown, Warning, "", "no process reports, though rules are in use: none runs, or none can write to the server", "see the programs' logs")
}
