package redisstore

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"hash/maphash"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/stats"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// WithStats makes this process publish how many calls each rule decided and refused, and for which subjects. It does so every five seconds while
// it decides calls, for at most 100 rules and about the 128 subjects of each with the most calls. Reports expire after 30 seconds.
// "ratelimitctl top" shows them. Subjects are published in the form of keys, so ratelimit.WithSubjectHash hides them here, too.
func WithStats() Option {
	return func(s *store) { s.stats = &statistics{store: s, seed: maphash.MakeSeed(), process: rand.Text()} }
}

// statistics counts decisions, and publishes the counts while there are any.
type statistics struct {
	store   *store
	seed    maphash.Seed
	process string // the name of this process in the store

	mu    sync.Mutex
	rules map[uint64]*counted // by hash; nil if no report is due
	began time.Time           // when the counting in rules began
}

// counted is the sketch of one rule.
type counted struct {
	prefix string
	rule   *engine.Rule
	sketch stats.Sketch
}

// Watches implements engine.Witness.
func (s *store) Watches() bool { return s.stats != nil }

// Witness implements engine.Witness.
func (s *store) Witness(call *engine.Call) { s.stats.note(call, new(engine.Verdict)) }

// note counts the answer to a call.
func (s *statistics) note(call *engine.Call, v *engine.Verdict) {
	if call.Peek || call.AskAgain(*v) {
		return
	}
	prefix := maphash.String(s.seed, call.Prefix)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.rules == nil {
		s.rules, s.began = map[uint64]*counted{}, time.Now()
		s.publishLater(nil)
	}
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
			r.sketch.Count(c.Subject, maphash.String(s.seed, c.Subject), n)
		}
	}
}

// rule returns the counts of a rule, or nil if there are too many rules. The statistics must be locked.
func (s *statistics) rule(id uint64, prefix string, rule *engine.Rule) *counted {
	r := s.rules[id]
	if r == nil && len(s.rules) < stats.MaxRules {
		r = &counted{prefix: prefix, rule: rule}
		s.rules[id] = r
	}
	return r
}

// publish writes reports of the decisions since the last reports, repeatedly. It stops when there were none, until the next decision.
func (s *statistics) publish(last map[string]*stats.Report) {
	reports := s.take()
	if len(reports) > 0 {
		defer s.publishLater(reports)
	}
	ctx, cancel := context.WithTimeout(context.Background(), stats.Every)
	defer cancel()
	for prefix := range last {
		if reports[prefix] == nil { // no more calls are decided under this prefix
			_ = s.store.Client.Del(ctx, stats.Key(prefix, s.process)).Err()
		}
	}
	for prefix, report := range reports {
		s.write(ctx, prefix, report)
	}
}

func (s *statistics) publishLater(last map[string]*stats.Report) {
	time.AfterFunc(stats.Every, func() { _ = s.store.Guard(func() { s.publish(last) }) })
}

// take returns a report for each prefix. If there is one, it starts counting for the next reports.
func (s *statistics) take() map[string]*stats.Report {
	s.mu.Lock()
	rules, began := s.rules, s.began
	s.rules, s.began = nil, time.Now()
	if len(rules) > 0 {
		s.rules = map[uint64]*counted{}
	}
	s.mu.Unlock()
	reports := map[string]*stats.Report{}
	for _, r := range rules {
		if reports[r.prefix] == nil {
			reports[r.prefix] = &stats.Report{Seconds: time.Since(began).Seconds()}
		}
		p := reports[r.prefix]
		p.Rules = append(p.Rules, stats.Rule{Name: r.rule.Name, Tag: r.rule.Tag, Counts: r.sketch.Counts(), Subjects: r.sketch.Subjects()})
	}
	return reports
}

// write publishes a report. A failure has no effect on decisions.
func (s *statistics) write(ctx context.Context, prefix string, report *stats.Report) {
	text, _ := json.Marshal(report) // texts and numbers: it never fails
	now, list := time.Now(), stats.List(prefix)
	_, _ = s.store.Client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Set(ctx, stats.Key(prefix, s.process), text, stats.Life)
		p.ZAdd(ctx, list, redis.Z{Score: float64(now.UnixMilli()), Member: s.process})
		p.ZRemRangeByScore(ctx, list, "-inf", strconv.FormatInt(now.Add(-stats.Unlisted).UnixMilli(), 10))
		p.PExpire(ctx, list, stats.Unlisted)
		return nil
	})
}
