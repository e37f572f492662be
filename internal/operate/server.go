package operate

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/redisinfo"
)

// server is what a server, or a master of a cluster, says of itself.
type server struct {
	name   string // on a cluster, its address; "" for a single server
	do     fleet.Do
	at     time.Time         // when it said this, by this process's clock
	ahead  time.Duration     // how far its clock is ahead of this machine's, beyond what the network may explain
	info   map[string]string // INFO; nil if the user may not run it
	before *server           // what it said last time; nil if it was not asked
	config map[string]string // CONFIG GET; nil if the user may not run it
	ready  error             // why calls cannot be decided
	pinged time.Time         // when that was asked
	slow   []slowCommand
	events []event              // that held the server up
	denied []denial             // of other users
	own    int64                // commands that the server denied this look
	hidden []string             // permissions that the user lacks
	lacked map[string]time.Time // when the server denied that permission
	err    error                // why the server does not answer
}

type slowCommand struct {
	name string
	took time.Duration
	age  time.Duration
}

type event struct {
	name string
	most time.Duration
	age  time.Duration
}

// denial is a command that the server denied a user, or "to sign in".
type denial struct {
	user, what string
	times      int64
	age        time.Duration
}

// recent is how far back slow commands and denials count.
const recent = time.Hour

// readServers asks the servers about themselves.
func (p *Prefix) readServers(ctx context.Context, old []server) (all []server, err error) {
	var mu sync.Mutex
	err = p.store().Servers(ctx, func(ctx context.Context, name string, do fleet.Do) error {
		s := server{name: name, do: do, at: time.Now(), lacked: map[string]time.Time{}}
		if i := slices.IndexFunc(old, func(o server) bool { return o.name == name }); i >= 0 {
			before := old[i]
			before.before = nil
			s.before = &before
		}
		s.examine(ctx)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, s)
		return nil
	})
	slices.SortFunc(all, func(a, b server) int { return strings.Compare(a.name, b.name) })
	if err == nil && len(all) > 0 {
		p.askReady(ctx, &all[0])
	}
	return all, err
}

// pingAgain is how long it counts that calls can be decided. Asking that takes many commands.
const pingAgain = time.Minute

// askReady asks whether calls can be decided, unless that was so lately and no decision of this process has failed.
func (p *Prefix) askReady(ctx context.Context, s *server) {
	_, failing := p.fleet.StoreFailure()
	if b := s.before; b != nil && b.ready == nil && failing == nil && s.at.Sub(b.pinged) < pingAgain {
		s.pinged = b.pinged
		return
	}
	s.ready, s.pinged = p.shown.Ping(ctx), s.at
}

// examine asks one server.
func (s *server) examine(ctx context.Context) {
	reply, err := s.ask(ctx, "+info", "INFO")
	if err != nil && !isDenied(err) {
		s.err = err
		return
	}
	if text, ok := reply.(string); ok {
		s.info = redisinfo.Fields(text)
	}
	s.readClock(ctx)
	if reply, err := s.ask(ctx, "+config|get", "CONFIG", "GET", "save", "appendfsync", "stop-writes-on-bgsave-error", "min-replicas-to-write",
		"cluster-node-timeout", "cluster-require-full-coverage"); err == nil {
		s.config = map[string]string{}
		for name, value := range pairs(reply) {
			s.config[name], _ = value.(string)
		}
	}
	s.readSlow(ctx)
	s.readEvents(ctx)
	s.readDenied(ctx)
	if s.isCluster() {
		if reply, err := s.ask(ctx, "+cluster|info", "CLUSTER", "INFO"); err == nil {
			text, _ := reply.(string)
			for name, value := range redisinfo.Fields(text) {
				s.info[name] = value
			}
		}
	}
}

// isCluster reports whether the server is a node of a cluster.
func (s *server) isCluster() bool {
	return s.info["redis_mode"] == "cluster" || s.info["server_mode"] == "cluster"
}

// askAnew is how long a command counts as denied: others who look would take each denial for one of a program.
const askAnew = time.Hour

// ask sends a command. It notes the permission for it if the user lacks that.
func (s *server) ask(ctx context.Context, permission string, command ...any) (any, error) {
	if s.before != nil {
		if at, lacked := s.before.lacked[permission]; lacked && s.at.Sub(at) < askAnew {
			s.lacked[permission], s.hidden = at, append(s.hidden, permission)
			return nil, errors.New("NOPERM " + permission + " was denied lately")
		}
	}
	replies, err := s.do(ctx, command)
	if err != nil {
		if isDenied(err) {
			s.own++
			s.lacked[permission], s.hidden = s.at, append(s.hidden, permission)
		}
		return nil, err
	}
	return replies[0], nil
}

// isDenied reports whether an error says that the user lacks a permission.
func isDenied(err error) bool { return strings.Contains(err.Error(), "NOPERM ") }

// pairs returns a map that a reply has. The protocol says whether it is one, or an array.
func pairs(reply any) map[string]any {
	all := map[string]any{}
	switch reply := reply.(type) {
	case map[any]any:
		for name, value := range reply {
			if name, ok := name.(string); ok {
				all[name] = value
			}
		}
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			if name, ok := reply[i].(string); ok {
				all[name] = reply[i+1]
			}
		}
	}
	return all
}

// readClock compares the server's clock with this machine's.
func (s *server) readClock(ctx context.Context) {
	sent := time.Now()
	reply, err := s.ask(ctx, "+time", "TIME")
	took := time.Since(sent)
	parts, ok := reply.([]any)
	if err != nil || !ok || len(parts) != 2 {
		return
	}
	s.ahead = skew(time.Unix(integer(parts[0]), 1000*integer(parts[1])), sent, took)
}

// skew returns how far a clock is ahead that said at, after a command was sent at sent, and the reply took took.
func skew(at, sent time.Time, took time.Duration) time.Duration {
	ahead := at.Sub(sent.Add(took / 2))
	if off := ahead.Abs() - took/2; off <= 0 {
		return 0
	}
	return ahead
}

// integer returns a number of a reply, or 0.
func integer(v any) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case string:
		n, _ := strconv.ParseInt(v, 10, 64) // 0 if it is none
		return n
	case float64:
		return int64(v)
	}
	return 0
}

// readSlow reads the slow log: of each entry its number, time, duration in microseconds, and arguments, of which the first names the command. The
// others may be secret.
func (s *server) readSlow(ctx context.Context) {
	reply, _ := s.ask(ctx, "+slowlog|get", "SLOWLOG", "GET", 128)
	entries, _ := reply.([]any)
	for _, e := range entries {
		entry, _ := e.([]any)
		if len(entry) < 4 {
			continue
		}
		age := s.age(entry[1])
		if age > recent {
			continue
		}
		if words, ok := entry[3].([]any); ok && len(words) > 0 {
			name, _ := words[0].(string)
			s.slow = append(s.slow, slowCommand{strings.ToUpper(name), time.Duration(integer(entry[2])) * time.Microsecond, age})
		}
	}
}

// age returns how long ago a time is, in seconds by the server's clock.
func (s *server) age(at any) time.Duration {
	return time.Since(time.Unix(integer(at), 0)) + s.ahead
}

// readEvents reads the events that held the server up, if it records them: of each its name, time, last and longest duration in milliseconds.
func (s *server) readEvents(ctx context.Context) {
	reply, _ := s.ask(ctx, "+latency|latest", "LATENCY", "LATEST")
	entries, _ := reply.([]any)
	for _, e := range entries {
		if entry, ok := e.([]any); ok && len(entry) >= 4 && s.age(entry[1]) <= recent {
			name, _ := entry[0].(string)
			s.events = append(s.events, event{name, time.Duration(integer(entry[3])) * time.Millisecond, s.age(entry[1])})
		}
	}
}

// onlyTools are commands that no limiter runs, but who looks at a server.
var onlyTools = []string{"ACL|LOG", "ACL|WHOAMI", "CONFIG|GET", "LATENCY|LATEST", "SLOWLOG|GET"}

// readDenied reads what the server denied other users than this one.
func (s *server) readDenied(ctx context.Context) {
	whoami, err := s.ask(ctx, "+acl|whoami", "ACL", "WHOAMI")
	if err != nil {
		return
	}
	reply, _ := s.ask(ctx, "+acl|log", "ACL", "LOG", 128)
	entries, _ := reply.([]any)
	for _, e := range entries {
		entry := pairs(e)
		text := func(name string) string {
			text, _ := entry[name].(string)
			return text
		}
		seconds, _ := strconv.ParseFloat(text("age-seconds"), 64)
		if f, ok := entry["age-seconds"].(float64); ok {
			seconds = f
		}
		d := denial{text("username"), strings.ToUpper(text("object")), integer(entry["count"]), time.Duration(seconds * float64(time.Second))}
		switch {
		case d.age > recent:
		case text("reason") == "auth":
			d.what = "to sign in"
			s.denied = append(s.denied, d)
		case d.user != whoami && !slices.Contains(onlyTools, d.what) && (d.what != "CLUSTER|SLOTS" || s.isCluster()):
			s.denied = append(s.denied, d)
		}
	}
}

const (
	maxScans  = 100  // SCAN commands for one server
	scanned   = 1000 // keys, of any prefix, that one SCAN looks at
	maxSample = 1000 // keys of a pattern that are looked for
)

// scan returns matching keys, at most maxSample. all reports whether there are no others. It looks only at a part of a large server's keys.
func scan(ctx context.Context, do fleet.Do, match string) (keys []string, all bool, err error) {
	cursor := "0"
	for range maxScans {
		replies, err := do(ctx, fleet.Command{"SCAN", cursor, "MATCH", match, "COUNT", scanned})
		if err != nil {
			return nil, false, err
		}
		reply, _ := replies[0].([]any)
		if len(reply) != 2 {
			break
		}
		cursor, _ = reply[0].(string)
		some, _ := reply[1].([]any)
		for _, k := range some {
			if k, ok := k.(string); ok {
				keys = append(keys, k)
			}
		}
		if cursor == "0" || len(keys) >= maxSample {
			break
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	return keys[:min(len(keys), maxSample)], cursor == "0" && len(keys) <= maxSample, nil
}

// Prefixes returns the prefixes on the servers, as far as a bounded search finds them, in the form of keys.
func (p *Prefix) Prefixes(ctx context.Context) (all []string, err error) {
	var mu sync.Mutex
	err = p.store().Servers(ctx, func(ctx context.Context, _ string, do fleet.Do) error {
		for _, pattern := range fleet.Patterns {
			keys, _, err := scan(ctx, do, pattern)
			if err != nil {
				return err
			}
			mu.Lock()
			for _, k := range keys {
				if prefix, ok := fleet.PrefixOf(k); ok {
					all = append(all, prefix)
				}
			}
			mu.Unlock()
		}
		return nil
	})
	slices.Sort(all)
	return slices.Compact(all), err
}
