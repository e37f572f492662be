package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/period"
)

// checkFleet finds what is wrong with the processes and the settings of the prefix. The limiter has just read the settings.
func (t *tool) checkFleet(ctx context.Context) (found []finding) {
	processes, err := t.fleet.Processes(ctx)
	if err != nil {
		return []finding{{Status: bad, Check: "processes", Found: err.Error(), Meaning: "it is unknown which processes run", Advice: "See ready"}}
	}
	shared, err := t.fleet.Shared(ctx)
	if err != nil {
		return []finding{{Status: bad, Check: "programs", Found: err.Error(), Meaning: "it is unknown which rules they declare", Advice: "See ready"}}
	}
	count := finding{Status: fine, Check: "processes", Found: period.Count(int64(len(processes)), "process") + " of prefix " + t.prefix}
	if len(processes) == 0 {
		count.Meaning = "none runs, or none can write to the server"
		rules, err := t.usedRules(ctx)
		count.silent = err == nil && len(rules) > 0
	}
	for _, f := range []finding{
		count, checkBuilds(processes), checkSkew(processes), checkShared(shared), checkStoreErrors(processes), t.checkSettings(processes),
	} {
		if f.Check != "" {
			found = append(found, f)
		}
	}
	return found
}

// checkBuilds finds programs of which several builds run.
func checkBuilds(processes []fleet.Process) finding {
	builds := map[string]map[string]int{}
	for _, p := range processes {
		if builds[p.Program] == nil {
			builds[p.Program] = map[string]int{}
		}
		builds[p.Program][p.Build]++
	}
	for _, program := range slices.Sorted(maps.Keys(builds)) {
		if by := builds[program]; len(by) > 1 {
			var texts []string
			for _, build := range slices.Sorted(maps.Keys(by)) {
				texts = append(texts, fmt.Sprintf("%s (%d)", cmp.Or(build, "-"), by[build]))
			}
			return finding{Status: warn, Check: "builds", Found: program + ": " + strings.Join(texts, ", "),
				Meaning: "where their limits differ, both are in force", Advice: "Finish the deployment"}
		}
	}
	return finding{}
}

// checkSkew finds processes whose clocks are wrong.
func checkSkew(processes []fleet.Process) finding {
	for _, p := range processes {
		if p.Ahead.Abs() > maxSkew {
			return finding{Status: warn, Check: "clocks", Found: processInWords(&p) + ": its clock is " + aheadInWords(p.Ahead) + " the server's",
				Meaning: "limits and settings go by the server's clock, but its log has other times", Advice: "Synchronize it by NTP"}
		}
	}
	return finding{}
}

// aheadInWords says how far a clock is ahead of another.
func aheadInWords(ahead time.Duration) string {
	direction := "ahead of"
	if ahead < 0 {
		direction = "behind"
	}
	return words(ahead.Abs()) + " " + direction
}

// checkShared finds programs that share counts by chance.
func checkShared(programs []string) finding {
	if len(programs) == 0 {
		return finding{}
	}
	return finding{Status: warn, Check: "programs", Found: strings.Join(programs, " and ") + " have a rule without a name that is called the same",
		Meaning: "they share its counts", Advice: "Give each program a prefix of its own by ratelimit.WithPrefix"}
}

// checkStoreErrors finds processes whose store fails.
func checkStoreErrors(processes []fleet.Process) finding {
	n, last := 0, ""
	for _, p := range processes {
		if p.Store == "" {
			continue
		}
		if n++; last == "" || strings.Contains(p.Store, clusterClient) {
			last = processInWords(&p) + ": " + p.Store
		}
	}
	switch {
	case n == 0:
		return finding{}
	case strings.Contains(last, clusterClient):
		return finding{Status: bad, Check: "decisions", Found: last, Meaning: "its calls fail for most keys", Advice: "Make its client with redis.NewClusterClient"}
	}
	return finding{Status: warn, Check: "decisions", Found: fmt.Sprintf("%d of %s, such as %s", n, period.Count(int64(len(processes)), "process"), last),
		Meaning: "their last decisions failed, and failure policies decided"}
}

// clusterClient is in the error of a client for one server that is connected to a node of a cluster: see Reason in package probe.
const clusterClient = "NewClusterClient"

// checkSettings finds settings that processes do not follow, or that the store has lost.
func (t *tool) checkSettings(processes []fleet.Process) finding {
	lost := 0
	for _, p := range processes {
		if p.Setting != "" {
			return finding{Status: warn, Check: "settings", Found: processInWords(&p), Meaning: "it goes on with what it read before",
				Advice: "Permit what ratelimitctl acl prints, and see ready"}
		}
		if p.Lost > 0 {
			lost++
		}
	}
	if lost > 0 {
		return finding{Status: warn, Check: "settings", Found: fmt.Sprintf("the store lost its settings; %s kept them", period.Count(int64(lost), "process")),
			Meaning: "processes that start do not know them", Advice: "Run ratelimitctl settings import with a file of settings export, or with an empty one"}
	}
	if err := t.limiter.Overrides().Err(); err != nil {
		return finding{Status: warn, Check: "settings", Found: err.Error(), Meaning: "limiters go on with what they read before",
			Advice: "Run ratelimitctl override list and ratelimitctl blocked, and clear what is wrong or too much"}
	}
	return finding{}
}
