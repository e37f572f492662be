package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
)

// recent is how far back doctor looks for slow commands and denials.
const recent = time.Hour

// checkGrowth says how fast keys and memory grow.
func checkGrowth(_ context.Context, s *server) finding {
	if s.later == nil {
		return unknown("growth", "+info")
	}
	seconds := s.observed.Seconds()
	memory := float64(redisinfo.Number(s.later, "used_memory_dataset")-redisinfo.Number(s.info, "used_memory_dataset")) / seconds
	keys := float64(keyCount(s.later)-keyCount(s.info)) / seconds
	f := finding{Status: fine, Check: "growth", Found: fmt.Sprintf("%s and %s a second, over %s", period.Count(int64(math.Round(keys)), "key"), bytesInWords(int64(memory)), words(s.observed.Round(100*time.Millisecond)))}
	most, used := redisinfo.Number(s.later, "maxmemory"), redisinfo.Number(s.later, "used_memory")
	if left := float64(most - used); most > 0 && memory > 0 && keys > 0 && left > 0 {
		if full := left / memory; full < recent.Seconds() {
			f.Status, f.Meaning = warn, fmt.Sprintf("at this rate the memory is full in %.0f minutes", full/60)
			f.Advice = "Find out who makes the keys by top, or raise maxmemory"
		}
	}
	if evicted := redisinfo.Number(s.later, "evicted_keys") - redisinfo.Number(s.info, "evicted_keys"); evicted > 0 {
		f.Status, f.Meaning = warn, fmt.Sprintf("%d keys were removed meanwhile, because the memory is full", evicted)
		f.Advice = "Raise maxmemory, and set noeviction"
	}
	return f
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

const (
	slowTrip = 20 * time.Millisecond  // at the median
	lateTrip = 250 * time.Millisecond // the timeout of decisions
	manyLate = 0.05                   // the share of late ones that is not by chance
)

// checkTrips says how long commands take.
func checkTrips(_ context.Context, s *server) finding {
	if len(s.trips) == 0 {
		return unknown("round trip", "+time")
	}
	at := func(share float64) time.Duration {
		return s.trips[int(share*float64(len(s.trips)-1))].Round(10 * time.Microsecond)
	}
	f := finding{Status: fine, Check: "round trip", Found: fmt.Sprintf("median %v, 99%% %v, longest %v of %d", at(0.5), at(0.99), at(1), len(s.trips))}
	inTime, _ := slices.BinarySearch(s.trips, lateTrip)
	switch late := 1 - float64(inTime)/float64(len(s.trips)); {
	case late > manyLate:
		f.Status = bad
		f.Meaning = fmt.Sprintf("%.0f%% took longer than the %v that decisions wait: such calls fail", 100*late, lateTrip)
		f.Advice = "See slow commands, and the network between"
	case at(0.5) > slowTrip:
		f.Status, f.Meaning, f.Advice = warn, "each call waits so long", "Run the programs near the server"
	}
	return f
}

// checkSlow looks into the slow log.
func checkSlow(ctx context.Context, s *server) finding {
	entries, err := s.SlowLogGet(ctx, 128).Result()
	if err != nil {
		return unknown("slow commands", "+slowlog|get")
	}
	n, slowest, name := 0, time.Duration(0), ""
	for _, e := range entries {
		if len(e.Args) == 0 || s.tool.fleet.Now().Sub(e.Time) > recent {
			continue
		}
		if n++; e.Duration > slowest {
			slowest, name = e.Duration, strings.ToUpper(e.Args[0]) // the other arguments may be secret
		}
	}
	if n == 0 {
		return finding{Status: fine, Check: "slow commands", Found: "none within an hour"}
	}
	return finding{Status: warn, Check: "slow commands", Found: fmt.Sprintf("%d within an hour, the slowest %s of %v", n, name, slowest.Round(time.Millisecond)),
		Meaning: "meanwhile all calls wait", Advice: "See SLOWLOG GET, and give the counts a server of their own"}
}

// checkLatency looks for events that held the server up, if it records them.
func checkLatency(ctx context.Context, s *server) finding {
	events, err := s.Latency(ctx).Result()
	if err != nil {
		return unknown("latency", "+latency|latest")
	}
	var texts []string
	for _, e := range events {
		if s.tool.fleet.Now().Sub(e.Time) <= recent {
			texts = append(texts, fmt.Sprintf("%s %v", e.Name, e.Max))
		}
	}
	if texts == nil {
		return finding{Status: fine, Check: "latency", Found: "no event is recorded within an hour"}
	}
	return finding{Status: warn, Check: "latency", Found: strings.Join(texts, ", "), Meaning: "meanwhile all calls waited", Advice: "See LATENCY DOCTOR"}
}

// checkErrors names the errors that the server replied with, since it started and while doctor observed it, and that no other check finds.
func checkErrors(_ context.Context, s *server) finding {
	if s.later == nil {
		return unknown("errors", "+info")
	}
	var texts []string
	grew, refuses := false, false
	for _, kind := range []string{"WRONGPASS", "NOPERM", "NOAUTH", "BUSY"} {
		n := errorCount(s.later, kind)
		if n == 0 {
			continue
		}
		text := fmt.Sprintf("%d %s", n, kind)
		if more := n - errorCount(s.info, kind); more > 0 {
			text, grew = fmt.Sprintf("%s (%d just now)", text, more), true
			refuses = refuses || kind == "WRONGPASS" || kind == "NOAUTH" // a NOPERM may be that of this tool
		}
		texts = append(texts, text)
	}
	f := finding{Status: fine, Check: "errors", refuses: refuses, Found: "no WRONGPASS, NOPERM, NOAUTH or BUSY since the server started"}
	if texts != nil {
		f.Found = strings.Join(texts, ", ") + " since the server started"
	}
	if grew {
		f.Status, f.Meaning, f.Advice = warn, "commands of some client fail", "See denied, and the logs of the programs"
	}
	return f
}

// errorCount returns how often the server replied with errors of a kind.
func errorCount(info map[string]string, kind string) int64 {
	return redisinfo.Number(redisinfo.List(info["errorstat_"+kind]), "count")
}

// checkDenied looks for users whom the server denied something, other than this one.
func checkDenied(ctx context.Context, s *server) finding {
	entries, err := s.ACLLog(ctx, 128).Result()
	if err != nil {
		return unknown("denied", "+acl|log")
	}
	own, _ := s.Do(ctx, "acl", "whoami").Text()
	by, refuses := map[string]int64{}, false
	for _, e := range entries {
		if e.AgeSeconds <= recent.Seconds() && (e.Username != own || e.Reason == "auth") {
			what := strings.ToUpper(e.Object)
			if e.Reason == "auth" {
				what = "to sign in"
			}
			by[e.Username+" "+what] += e.Count
			refuses = refuses || e.AgeSeconds <= time.Minute.Seconds()
		}
	}
	if len(by) == 0 {
		return finding{Status: fine, Check: "denied", Found: "nobody within an hour"}
	}
	return finding{Status: warn, Check: "denied", refuses: refuses, Found: denialsInWords(by) + " within an hour", Meaning: "calls of programs with that user may fail",
		Advice: "See ACL LOG, check the password, and permit what ratelimitctl acl prints"}
}

// denialsInWords lists who was denied what, the most frequent first.
func denialsInWords(by map[string]int64) string {
	var all []string
	for who := range by {
		all = append(all, who)
	}
	slices.SortFunc(all, func(a, b string) int {
		if by[a] != by[b] {
			return int(by[b] - by[a])
		}
		return strings.Compare(a, b)
	})
	var texts []string
	for _, who := range all[:min(len(all), shownUses)] {
		texts = append(texts, fmt.Sprintf("%s (%d)", who, by[who]))
	}
	if more := len(all) - shownUses; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(texts, ", ")
}

// checkMoved looks for clients that send commands to the wrong server of a cluster.
func checkMoved(_ context.Context, s *server) finding {
	if !s.tool.isCluster() || s.later == nil {
		return finding{}
	}
	n := errorCount(s.later, "MOVED") - errorCount(s.info, "MOVED")
	if n == 0 {
		return finding{}
	}
	return finding{Status: warn, Check: "clients", Found: fmt.Sprintf("%d commands just now for keys of other servers", n),
		Meaning: "perhaps a client knows only one server", Advice: "Make it with redis.NewClusterClient"}
}
