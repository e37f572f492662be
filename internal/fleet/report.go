package fleet

import (
	"bytes"
	"cmp"
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

	// SlotLength is how long a slot of the history lasts.
	SlotLength = sayEvery * time.Second
	// HistoryLength is how far the history goes back.
	HistoryLength = slots * SlotLength

	slots    = 120
	perHash  = 24 // slots in one hash
	hashLife = HistoryLength + perHash*SlotLength
	maxSums  = perHash * MaxReportRules * 4 // fields of a hash: each of the four kinds, for each rule and slot
	perSums  = 2048                         // of these, those that one command asks for
)

// kinds are the words for the counts in the fields of the history: "354320017 refused login 1h" is a count of the slot 354320017. The field
// "354320017 refused/60 login 1h" counts for 60 slots, the last of which is that one.
var kinds = map[string]func(*Counts) *int64{
	"calls":   func(c *Counts) *int64 { return &c.Calls },
	"refused": func(c *Counts) *int64 { return &c.Refused },
	"shadow":  func(c *Counts) *int64 { return &c.Shadow },
	"failed":  func(c *Counts) *int64 { return &c.Failed },
}

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

// publishReport writes a report of the decisions since the last one, and adds it to the history.
func (f *Fleet) publishReport(ctx context.Context) error {
	p := f.Stats.take()
	if p == nil {
		_, err := f.do(ctx, Command{"DEL", f.keys.reports + f.self.id})
		return err
	}
	if _, err := f.do(ctx, Command{"SET", f.keys.reports + f.self.id, p.text(), "PX", processLife.Milliseconds()}); err != nil {
		return err
	}
	return f.addHistory(ctx, p)
}

// text returns the report as the store has it. It leaves angle brackets as they are: six bytes for each bracket in subjects that callers chose
// could make a report too large for its readers.
func (r *Report) text() []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(r) // texts and numbers: it never fails
	return b.Bytes()
}

// addHistory adds a report to the sums of the fleet.
func (f *Fleet) addHistory(ctx context.Context, p *Report) error {
	at := slotAt(f.Now())
	key := f.historyKey(at)
	replies, err := f.do(ctx, Command{"HLEN", key})
	if err != nil {
		return err
	}
	if n, _ := replies[0].(int64); n >= maxSums/perHash*(at%perHash+1) { // so that no slot takes the room of later ones
		return nil
	}
	slots := ""
	if n := math.Ceil(p.Seconds/SlotLength.Seconds() - 0.2); n > 1 { // the store was lost meanwhile; a beat may be a little late
		slots = fmt.Sprintf("/%.0f", n)
	}
	commands := []Command{{"PEXPIRE", key, hashLife.Milliseconds()}}
	for i := range p.Rules {
		r := &p.Rules[i]
		for kind, counter := range kinds {
			if count := *counter(&r.Counts); count > 0 {
				commands = append(commands, Command{"HINCRBY", key, fmt.Sprintf("%d %s%s %s %s", at, kind, slots, r.Name, r.Tag), count})
			}
		}
	}
	slices.Reverse(commands) // so that the key is there when it gets its expiry
	for some := range slices.Chunk(commands, perCommand) {
		if _, err := f.do(ctx, some...); err != nil {
			return err
		}
	}
	return nil
}

// slotAt returns the number of the slot of a time.
func slotAt(t time.Time) int64 { return t.UnixMilli() / SlotLength.Milliseconds() }

// historyKey returns the key of the hash that has a slot.
func (f *Fleet) historyKey(slot int64) string {
	return f.keys.history + strconv.FormatInt(slot/perHash, 10)
}

// Slot has the sums of all processes for five seconds.
type Slot struct {
	At    time.Time    `json:"at"` // when it began
	Rules []RuleCounts `json:"rules,omitempty"`
}

// History returns the sums of the last ten minutes, the oldest first. It leaves out slots that began before since, unless later reports count in
// them.
func (f *Fleet) History(ctx context.Context, since time.Time) ([]Slot, error) {
	if f.server == nil {
		return nil, nil
	}
	return beside(ctx, f, func() ([]Slot, error) {
		now, err := f.clock(ctx)
		if err != nil {
			return nil, err
		}
		last := slotAt(now)
		oldest := last - slots + 1
		first := max(oldest, slotAt(since.Add(SlotLength-time.Millisecond)))
		sums, reached, err := f.sums(ctx, first, last)
		if err == nil && max(oldest, reached) < first {
			first = oldest
			sums, _, err = f.sums(ctx, first, last)
		}
		if err != nil {
			return nil, err
		}
		return slotsOf(sums, first, last), nil
	})
}

// sums reads the sums of the slots from first to last. reached is the first slot in which the reports of these slots count.
func (f *Fleet) sums(ctx context.Context, first, last int64) (sums map[sumOf]*Counts, reached int64, err error) {
	sums, reached = map[sumOf]*Counts{}, first
	for n := first; n <= last; n = (n/perHash + 1) * perHash {
		counts := map[string]string{} // by field
		if err := f.scan(ctx, f.historyKey(n), perSums, maxSums, func(field, count string) { counts[field] = count }); err != nil {
			return nil, 0, err
		}
		reached = min(reached, addSums(sums, counts, first, last))
	}
	return sums, reached, nil
}

// sumOf identifies the sums of a rule in a slot.
type sumOf struct {
	slot      int64
	name, tag string
}

// addSums adds those fields of a hash that count in slots from first to last, and returns the first slot in which they count.
func addSums(sums map[sumOf]*Counts, counts map[string]string, first, last int64) (reached int64) {
	reached = first
	for field, text := range counts {
		words := strings.SplitN(field, " ", 4)
		count, err := strconv.ParseInt(text, 10, 64)
		if len(words) < 4 || err != nil || len(field) > MaxText {
			continue
		}
		kind, of, _ := strings.Cut(words[1], "/")
		at, _ := strconv.ParseInt(words[0], 10, 64)
		if kinds[kind] == nil || at < first || at > last {
			continue
		}
		slots, _ := strconv.ParseInt(of, 10, 64)
		slots = max(1, slots)
		reached = min(reached, at-slots+1)
		for n := max(first, at-slots+1); n <= at; n++ {
			id := sumOf{n, words[2], words[3]}
			if sums[id] == nil {
				sums[id] = new(Counts)
			}
			*kinds[kind](sums[id]) += share(count, slots, at-n)
		}
	}
	return reached
}

// share returns the part of a count that is one of several equal parts. The first ones have what is left over.
func share(count, parts, index int64) int64 {
	if index < count%parts {
		return count/parts + 1
	}
	return count / parts
}

// slotsOf returns the slots from first to last.
func slotsOf(sums map[sumOf]*Counts, first, last int64) []Slot {
	all := make([]Slot, max(0, last-first+1))
	for i := range all {
		all[i].At = time.UnixMilli((first + int64(i)) * SlotLength.Milliseconds())
	}
	for id, c := range sums {
		if i := id.slot - first; i >= 0 && i < int64(len(all)) {
			all[i].Rules = append(all[i].Rules, RuleCounts{Name: id.name, Tag: id.tag, Counts: *c})
		}
	}
	for i := range all {
		slices.SortFunc(all[i].Rules, func(a, b RuleCounts) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Tag, b.Tag))
		})
	}
	return all
}

// Reports returns the last report of each given process that publishes statistics.
func (f *Fleet) Reports(ctx context.Context, of []Process) (reports []Report, err error) {
	if f.server == nil {
		return nil, nil
	}
	for some := range slices.Chunk(of, perCommand) {
		get := Command{"MGET"}
		for _, p := range some {
			get = append(get, f.keys.reports+p.ID)
		}
		replies, err := f.do(ctx, get)
		if err != nil {
			return nil, err
		}
		for i, text := range texts(replies[0]) {
			if r, err := ParseReport(text); err == nil {
				r.Process = some[i]
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
