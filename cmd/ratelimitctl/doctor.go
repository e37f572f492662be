package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

	silent  bool // no process reports, though rules are in use
	refuses bool // within the last minute, the server refused a user's password or command
}

// The status of a finding.
const (
	fine  = "ok"
	warn  = "warn" // limits, overrides, blocks or pauses may be lost, or calls are slow
	bad   = "bad"  // calls fail, or soon will
	hides = "?"    // the user lacks the permission for the check
)

// server is a server, or a master of a cluster, with the information that it gives about itself.
type server struct {
	redis.UniversalClient
	tool     *tool
	name     string            // on a cluster, its address
	info     map[string]string // INFO; nil if the user may not run it
	later    map[string]string // INFO, after observed
	config   map[string]string // CONFIG GET; nil if the user may not run it
	keys     []string          // a sample of the keys of the prefix
	whole    bool              // the sample has all of them
	scanErr  error
	trips    []time.Duration // round trips of a command, sorted
	observed time.Duration   // between the two INFO
}

// observation is how long doctor observes a server.
var observation = 2 * time.Second

// checks are made on the single server, or on each master of a cluster, in this order.
var checks = []func(context.Context, *server) finding{
	checkVersion, checkEviction, checkMemory, checkGrowth, checkKeys, checkExpiries, checkPersistence, checkReplicas, checkClock, checkTrips,
	checkSlow, checkLatency, checkErrors, checkDenied, checkCluster, checkMoved,
}

// doctor checks the servers and the processes. It fails if a finding is bad.
func (t *tool) doctor(ctx context.Context, _ []string) error {
	findings, answers := []finding{t.checkReady(ctx)}, true
	if findings[0].Status == fine {
		findings = append(findings, t.checkFleet(ctx)...)
	} else {
		var wrong error
		if wrong, answers = t.sentinel(ctx); wrong != nil {
			return wrong
		}
	}
	var err error
	if answers || t.isCluster() {
		var servers []finding
		servers, err = t.examineEach(ctx)
		findings = append(findings, servers...)
	}
	blameRefusals(findings)
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

// examineEach examines the single server, or each master of a cluster.
func (t *tool) examineEach(ctx context.Context) ([]finding, error) {
	found, err := eachServer(ctx, t, func(ctx context.Context, s *server) ([]finding, error) { return s.examine(ctx), nil })
	servers := slices.Concat(found...)
	slices.SortStableFunc(servers, func(a, b finding) int { return strings.Compare(a.Server, b.Server) })
	return servers, err
}

// blameRefusals makes it bad that no process reports, if servers refuse users meanwhile.
func blameRefusals(findings []finding) {
	if !slices.ContainsFunc(findings, func(f finding) bool { return f.refuses }) {
		return
	}
	for i := range findings {
		if f := &findings[i]; f.silent {
			f.Status, f.Meaning = bad, "rules are in use, but no process can write, and the server refused users within the last minute: calls fail"
			f.Advice = "See errors and denied, and check the programs' user and password"
		}
	}
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
		text := strings.TrimSuffix(strings.TrimPrefix(err.Error(), "store: "), ".")
		text = strings.Replace(text, `: ask "ratelimitctl doctor" which servers fail`, "", 1) // this is doctor
		return finding{Status: bad, Check: "ready", Found: text, Meaning: "calls fail"}
	}
	f := finding{Status: fine, Check: "ready", Found: "this user may run all that the rules in use need"}
	if rules, err := t.usedRules(ctx); err == nil && len(rules) == 0 {
		f.Found = "this user may run what every rule needs; no process has said within a day that it has rules"
	}
	return f
}

// examine makes all checks on one server.
func (s *server) examine(ctx context.Context) (found []finding) {
	text, err := s.Info(ctx).Result()
	switch {
	case err == nil:
		s.info = redisinfo.Fields(text)
	case !isDenied(err):
		return []finding{{Status: bad, Server: s.name, Check: "server", Found: err.Error(), Meaning: "calls fail", Advice: "Check whether it runs"}}
	}
	config := redis.NewMapStringStringCmd(ctx, "config", "get", "save", "appendfsync", "stop-writes-on-bgsave-error", "min-replicas-to-write",
		"cluster-node-timeout", "cluster-require-full-coverage")
	if s.Process(ctx, config) == nil {
		s.config = config.Val()
	}
	s.keys, s.whole, s.scanErr = s.sample(ctx)
	s.observe(ctx)
	for _, check := range checks {
		if f := check(ctx, s); f.Check != "" {
			f.Server = s.name
			found = append(found, f)
		}
	}
	return found
}

// tripEvery is the time between two round trips.
const tripEvery = 20 * time.Millisecond

// observe measures round trips for some time, and asks for INFO again.
func (s *server) observe(ctx context.Context) {
	began := time.Now()
	for time.Since(began) < observation && ctx.Err() == nil {
		sent := time.Now()
		if _, err := s.Time(ctx).Result(); err != nil {
			break
		}
		s.trips = append(s.trips, time.Since(sent))
		time.Sleep(tripEvery)
	}
	slices.Sort(s.trips)
	s.observed = time.Since(began)
	if text, err := s.Info(ctx).Result(); err == nil && s.info != nil {
		s.later = redisinfo.Fields(text)
	}
}

func isDenied(err error) bool { return strings.HasPrefix(err.Error(), "NOPERM ") }

// unknown returns the finding of a check for which the user lacks a permission.
func unknown(check, permission string) finding {
	return finding{Status: hides, Check: check, Found: "this user may not ask", Advice: "Permit " + permission + ", or use another user"}
}
