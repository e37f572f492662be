package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
)

// finding is the result of one check, in one line.
type finding struct {
	Status  string `json:"status"`
	Server  string `json:"server,omitempty"` // on a cluster, its address
	Check   string `json:"check"`
	Found   string `json:"found"`
	Meaning string `json:"meaning,omitempty"`
	Advice  string `json:"advice,omitempty"`
}

// The status of a finding.
const (
	fine  = "ok"
	warn  = "warn" // limits, overrides or blocks may be lost
	bad   = "bad"  // calls fail, or soon will
	hides = "?"    // the user lacks the permission for the check
)

// patient is a server under examination, with the information that it gives about itself.
type patient struct {
	redis.UniversalClient
	tool   *tool
	info   map[string]string // INFO; nil if the user may not run it
	config map[string]string // CONFIG GET; nil if the user may not run it
}

// checks are made on the single server, or on each master of a cluster, in this order.
var checks = []func(context.Context, *patient) finding{
	checkVersion, checkEviction, checkMemory, checkPersistence, checkReplicas, checkClock, checkCluster, checkExpiries,
}

// doctor checks the servers. It fails if a finding is bad.
func (t *tool) doctor(ctx context.Context, _ []string, _ options) error {
	findings := []finding{t.checkReady(ctx)}
	if findings[0].Status == fine {
		findings = append(findings, t.checkSettings()...)
	}
	var err error
	if cluster, ok := t.client.(*redis.ClusterClient); ok {
		var mu sync.Mutex
		err = cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
			found := t.examine(ctx, master, master.Options().Addr)
			mu.Lock()
			defer mu.Unlock()
			findings = append(findings, found...)
			return nil
		})
		slices.SortStableFunc(findings, func(a, b finding) int { return strings.Compare(a.Server, b.Server) })
	} else {
		findings = append(findings, t.examine(ctx, t.client, "")...)
	}
	var lines [][]string
	ill := 0
	for _, f := range findings {
		if f.Status == bad {
			ill++
		}
		lines = append(lines, f.line())
	}
	if err := cmp.Or(t.print(findings, lines...), err); err != nil {
		return err
	}
	if ill > 0 {
		return fmt.Errorf("%d of %d checks are bad", ill, len(findings))
	}
	return nil
}

// line returns the cells of a finding: what was found, what it means, and what to do.
func (f *finding) line() []string {
	text := f.Found
	if f.Meaning != "" {
		text += ": " + f.Meaning
	}
	if f.Advice != "" {
		text += ". " + f.Advice
	}
	if f.Server != "" {
		return []string{f.Status, f.Server, f.Check, text}
	}
	return []string{f.Status, f.Check, text}
}

// checkReady checks whether the tool's user may do what limiters do.
func (t *tool) checkReady(ctx context.Context) finding {
	if err := t.limiter.Ping(ctx); err != nil {
		return finding{Status: bad, Check: "ready", Found: strings.TrimSuffix(strings.TrimPrefix(err.Error(), "store: "), "."), Meaning: "calls fail"}
	}
	f := finding{Status: fine, Check: "ready", Found: "this user may run all that the rules in use need"}
	if rules, err := t.rules(ctx); err == nil && len(rules) == 0 {
		f.Found = "this user may run what every rule needs; no limiter used a rule within a day"
	}
	return f
}

// checkSettings finds what limiters do not follow. The limiter has just read the overrides and blocks.
func (t *tool) checkSettings() []finding {
	err := t.limiter.Overrides().Err()
	if err == nil {
		return nil
	}
	return []finding{{
		Status: warn, Check: "settings", Found: err.Error(), Meaning: "limiters go on with what they read before",
		Advice: "Run ratelimitctl override list and ratelimitctl blocked, and clear what is wrong or too much",
	}}
}

// examine makes all checks on one server.
func (t *tool) examine(ctx context.Context, server redis.UniversalClient, name string) (found []finding) {
	p := &patient{UniversalClient: server, tool: t}
	text, err := server.Info(ctx).Result()
	switch {
	case err == nil:
		p.info = redisinfo.Fields(text)
	case !isDenied(err):
		return []finding{{Status: bad, Server: name, Check: "server", Found: err.Error(), Meaning: "calls fail", Advice: "Check whether it runs"}}
	}
	config := redis.NewMapStringStringCmd(ctx, "config", "get", "save", "appendfsync", "stop-writes-on-bgsave-error", "min-replicas-to-write",
		"cluster-node-timeout", "cluster-require-full-coverage")
	if server.Process(ctx, config) == nil {
		p.config = config.Val()
	}
	for _, check := range checks {
		if f := check(ctx, p); f.Check != "" {
			f.Server = name
			found = append(found, f)
		}
	}
	return found
}

func isDenied(err error) bool { return strings.HasPrefix(err.Error(), "NOPERM ") }

// unknown returns the finding of a check for which the user lacks a permission.
func unknown(check, permission string) finding {
	return finding{Status: hides, Check: check, Found: "this user may not ask", Advice: "Permit " + permission + ", or use another user"}
}
