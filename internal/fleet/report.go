package fleet

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/maphash"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Statistics count what this process decides. Each process publishes a report of its own, and adds to sums of the whole fleet.
type Statistics struct {
	sync.Mutex
	rules map[uint64]*counted // by hash
	began time.Time           // when the counting in rules began
}

// counted is the sketch of one rule.
type counted struct {
	name, tag string
	sketch    Sketch
}

const (
	// MaxReportRules is the largest number of rules in a report.
	MaxReportRules = 100
	// MaxReport is the size of the largest report that can be read, in bytes.
	MaxReport = 8 << 20

	slot     = sayEvery * time.Second // of the history
	slots    = 120
	slotLife = (slots + 2) * slot
)

// Report counts the decisions that one process made in a span of time.
type Report struct {
	Process Process      `json:"-"`
	Seconds float64      `json:"seconds"`
	Rules   []RuleCounts `json:"rules"`
}

// RuleCounts counts the decisions of one rule. Name and Tag are parts of its keys.
type RuleCounts struct {
	Name string `json:"name"`
	Tag  string `json:"tag"`
	Counts
	Subjects []Subject `json:"subjects,omitempty"`
}

// Subject counts the decisions for one subject. Its name has the form that keys use.
type Subject struct {
	Name string `json:"subject"`
	Counts
}

func newStatistics() *Statistics { return &Statistics{rules: map[uint64]*counted{}, began: time.Now()} }

// Statistics returns what counts decisions, or nil if nothing does.
func (f *Fleet) Statistics() *Statistics { return f.stats }

// Count counts a decision of a rule, whose hash identifies it. The statistics must be locked.
func (s *Statistics) Count(hash uint64, name, tag, subject string, n Counts) {
	r := s.rules[hash]
	if r == nil {
		if len(s.rules) >= MaxReportRules {
			return
		}
		r = &counted{name: name, tag: tag}
		s.rules[hash] = r
	}
	r.sketch.Count(subject, maphash.String(seed, subject), n)
}

// take returns the report of the decisions since the last one, or nil if there were none.
func (s *Statistics) take() *Report {
	s.Lock()
	rules, began := s.rules, s.began
	s.rules, s.began = make(map[uint64]*counted, len(rules)), time.Now()
	s.Unlock()
	if len(rules) == 0 {
		return nil
	}
	p := &Report{Seconds: max(time.Since(began).Seconds(), time.Millisecond.Seconds())}
	for _, r := range rules {
		p.Rules = append(p.Rules, RuleCounts{Name: r.name, Tag: r.tag, Counts: r.sketch.Counts(), Subjects: r.sketch.Subjects()})
	}
	return p
}

// publish writes a report of the decisions since the last one.
func (f *Fleet) publishReport(ctx context.Context) error {
	p := f.stats.take()
	if p == nil {
		_, err := f.do(ctx, Command{"DEL", f.keys.reports + f.self.id})
		return err
	}
	text, _ := json.Marshal(p) // texts and numbers: it never fails
	if _, err := f.do(ctx, Command{"SET", f.keys.reports + f.self.id, text, "PX", processLife.Milliseconds()}); err != nil {
		return err
	}
	return f.addHistory(ctx, p)
}

// addHistory adds a report to the sums of the fleet.
func (f *Fleet) addHistory(ctx context.Context, p *Report) error {
	key := f.slotKey(f.Now())
	replies, err := f.do(ctx, Command{"HLEN", key})
	if err != nil {
		return err
	}
	if n, _ := replies[0].(int64); n >= 4*MaxReportRules {
		return nil
	}
	commands := []Command{{"PEXPIRE", key, slotLife.Milliseconds()}}
	for i := range p.Rules {
		r := &p.Rules[i]
		for kind, n := range map[string]int64{"calls": r.Calls, "refused": r.Refused, "shadow": r.Shadow, "failed": r.Failed} {
			if n > 0 {
				commands = append(commands, Command{"HINCRBY", key, kind + " " + r.Name + " " + r.Tag, n})
			}
		}
	}
	slices.Reverse(commands) // so that the key is there when it gets its expiry
	return each(commands, func(some []Command) error {
		_, err := f.do(ctx, some...)
		return err
	})
}

func (f *Fleet) slotKey(at time.Time) string {
	return f.keys.history + strconv.FormatInt(at.UnixMilli()/slot.Milliseconds(), 10)
}

// Slot has the sums of all processes for five seconds.
type Slot struct {
	At    time.Time    `json:"at"` // when it began
	Rules []RuleCounts `json:"rules,omitempty"`
}

// History returns the sums of the last ten minutes, the oldest first. It leaves out slots that began before since: those of the past do not change.
func (f *Fleet) History(ctx context.Context, since time.Time) ([]Slot, error) {
	if f.server == nil {
		return nil, nil
	}
	return alone(ctx, f, func() ([]Slot, error) {
		now, err := f.clock(ctx)
		if err != nil {
			return nil, err
		}
		var all []Slot
		last := now.Truncate(slot)
		for at := last.Add(-(slots - 1) * slot); !at.After(last); at = at.Add(slot) {
			if at.Before(since) {
				continue
			}
			replies, err := f.do(ctx, Command{"HSCAN", f.slotKey(at), 0, "COUNT", 4 * MaxReportRules})
			if err != nil {
				return nil, err
			}
			s := Slot{At: at}
			if page, _ := replies[0].([]any); len(page) == 2 {
				s.Rules = sums(texts(page[1]))
			}
			all = append(all, s)
		}
		return all, nil
	})
}

// sums returns the counts in the fields of a slot.
func sums(fields []string) (all []RuleCounts) {
	by := map[[2]string]*Counts{}
	for i := 0; i+1 < len(fields); i += 2 {
		kind, rule, _ := strings.Cut(fields[i], " ")
		name, tag, _ := strings.Cut(rule, " ")
		n, err := strconv.ParseInt(fields[i+1], 10, 64)
		if err != nil || len(fields[i]) > MaxText {
			continue
		}
		c := by[[2]string{name, tag}]
		if c == nil {
			c = new(Counts)
			by[[2]string{name, tag}] = c
		}
		switch kind {
		case "calls":
			c.Calls = n
		case "refused":
			c.Refused = n
		case "shadow":
			c.Shadow = n
		case "failed":
			c.Failed = n
		}
	}
	for id, c := range by {
		all = append(all, RuleCounts{Name: id[0], Tag: id[1], Counts: *c})
	}
	slices.SortFunc(all, func(a, b RuleCounts) int { return strings.Compare(a.Name+" "+a.Tag, b.Name+" "+b.Tag) })
	return all
}

// Reports returns the last report of each process that publishes some.
func (f *Fleet) Reports(ctx context.Context) (reports []Report, err error) {
	if f.server == nil {
		return nil, nil
	}
	processes, err := f.Processes(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range processes { // one at a time, because a report may be large
		replies, err := f.do(ctx, Command{"GET", f.keys.reports + p.ID})
		if err != nil {
			return nil, err
		}
		if text, _ := replies[0].(string); text != "" {
			if r, err := ParseReport(text); err == nil {
				r.Process = p
				reports = append(reports, r)
			}
		}
	}
	return reports, nil
}

// ParseReport parses a report of the store.
func ParseReport(text string) (Report, error) {
	var r Report
	if len(text) > MaxReport {
		return r, fmt.Errorf("found a report of %d bytes; expected at most %d", len(text), MaxReport)
	}
	err := json.Unmarshal([]byte(text), &r)
	switch {
	case err != nil:
	case !(r.Seconds >= time.Millisecond.Seconds() && r.Seconds < time.Hour.Seconds()) || math.IsNaN(r.Seconds):
		err = fmt.Errorf("found a report of %g seconds", r.Seconds)
	case len(r.Rules) > MaxReportRules:
		err = fmt.Errorf("found a report of %d rules; expected at most %d", len(r.Rules), MaxReportRules)
	}
	return r, err
}
