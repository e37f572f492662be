package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"hash/maphash"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/stats"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// WithStats makes this process publish, every five seconds while it decides, how many calls each rule decided and refused, and for
// which subjects: of at most 100 rules about the 128 subjects with the most calls. Reports expire after 30 seconds. "ratelimitctl top"
// shows them. Subjects are published as they stand in keys, so ratelimit.WithSubjectHash hides them here too.
func WithStats() Option {
	return func(s *store) { s.stats = &statistics{store: s, seed: maphash.MakeSeed(), process: rand.Text()} }
}

// statistics counts decisions, and publishes the counts while there are any.
type statistics struct {
	store   *store
	seed    maphash.Seed
	process string // its name in the store
	rules   atomic.Pointer[map[uint64]*counted]
	runs    atomic.Bool // a report is due

	mu        sync.Mutex // held while rules is replaced
	began     time.Time  // when the first decision of the next report was made, or the last report
	published map[string]bool
}

// counted is the sketch of one rule.
type counted struct {
	prefix string
	rule   *engine.Rule
	mu     sync.Mutex
	sketch stats.Sketch
}

// Watches implements engine.Witness.
func (s *store) Watches() bool { return s.stats != nil }

// Witness implements engine.Witness.
func (s *store) Witness(call *engine.Call) { s.stats.note(call, new(engine.Verdict)) }

// note takes in the answer to a call.
func (s *statistics) note(call *engine.Call, v *engine.Verdict) {
	if call.Peek || call.AskAgain(*v) {
		return
	}
	prefix := maphash.String(s.seed, call.Prefix)
	for i := range call.Claims {
		c := &call.Claims[i]
		if r := s.rule(prefix+c.Rule.Hash(), call.Prefix, c.Rule); r != nil {
			n := stats.Counts{Calls: 1}
			switch {
			case c.Refused && c.Mode == engine.Enforce:
				n.Refused = 1
			case c.Refused:
				n.Shadow = 1
			}
			hash := maphash.String(s.seed, c.Subject)
			r.mu.Lock()
			r.sketch.Count(c.Subject, hash, n)
			r.mu.Unlock()
		}
	}
	if !s.runs.Load() {
		s.start()
	}
}

// rule returns the sketch of a rule, or nil if there are too many rules.
func (s *statistics) rule(id uint64, prefix string, rule *engine.Rule) *counted {
	if rules := s.rules.Load(); rules != nil {
		if r := (*rules)[id]; r != nil || len(*rules) >= stats.MaxRules {
			return r
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rules := map[uint64]*counted{}
	if old := s.rules.Load(); old != nil {
		rules = maps.Clone(*old)
	}
	if rules[id] == nil {
		rules[id] = &counted{prefix: prefix, rule: rule}
		s.rules.Store(&rules)
	}
	return rules[id]
}

// start has the next report published, if nobody else does.
func (s *statistics) start() {
	if s.runs.CompareAndSwap(false, true) {
		s.mu.Lock()
		s.began = time.Now()
		s.mu.Unlock()
		time.AfterFunc(stats.Every, s.publish)
	}
}

// publish tells what was decided, again and again. Where nothing was, it ends until the next decision.
func (s *statistics) publish() {
	if s.tell() {
		time.AfterFunc(stats.Every, s.publish)
		return
	}
	s.runs.Store(false)
	if len(*s.rules.Load()) > 0 { // decided just now by somebody who saw that this runs
		s.start()
	}
}

// tell writes what was decided since the last time, and reports whether anything was.
func (s *statistics) tell() bool {
	reports := s.take()
	ctx, cancel := context.WithTimeout(context.Background(), stats.Every)
	defer cancel()
	for prefix := range s.published {
		if reports[prefix] == nil {
			s.withdraw(ctx, prefix)
			delete(s.published, prefix)
		}
	}
	for prefix, report := range reports {
		s.write(ctx, prefix, report)
	}
	return len(reports) > 0
}

// take returns a report for each prefix, and begins the next ones.
func (s *statistics) take() map[string]*stats.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	reports, left := map[string]*stats.Report{}, map[uint64]*counted{}
	now := time.Now()
	for id, r := range *s.rules.Load() {
		r.mu.Lock()
		sketch := r.sketch
		r.sketch = stats.Sketch{}
		r.mu.Unlock()
		if sketch.Counts().Calls == 0 {
			continue
		}
		left[id] = r
		if reports[r.prefix] == nil {
			reports[r.prefix] = &stats.Report{Seconds: now.Sub(s.began).Seconds()}
		}
		p := reports[r.prefix]
		p.Rules = append(p.Rules, stats.Rule{Name: r.rule.Name, Tag: r.rule.Tag, Counts: sketch.Counts(), Subjects: sketch.Subjects()})
	}
	s.rules.Store(&left)
	s.began = now
	return reports
}

// write publishes a report. That it fails has no effect on decisions.
func (s *statistics) write(ctx context.Context, prefix string, report *stats.Report) {
	text, err := json.Marshal(report)
	if err != nil {
		return
	}
	if s.published == nil {
		s.published = map[string]bool{}
	}
	s.published[prefix] = true
	now, list := time.Now(), stats.List(prefix)
	_, _ = s.store.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, stats.Key(prefix, s.process), text, stats.Life)
		p.ZAdd(ctx, list, redis.Z{Score: float64(now.UnixMilli()), Member: s.process})
		p.ZRemRangeByScore(ctx, list, "-inf", strconv.FormatInt(now.Add(-stats.Unlisted).UnixMilli(), 10))
		p.PExpire(ctx, list, stats.Unlisted)
		return nil
	})
}

// withdraw removes the report of a prefix under which nothing is decided any more.
func (s *statistics) withdraw(ctx context.Context, prefix string) {
	_ = s.store.client.Del(ctx, stats.Key(prefix, s.process)).Err()
}
