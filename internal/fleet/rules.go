package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Rule is a rule that a process declares.
type Rule struct {
	Name, Tag string
	Unnamed   bool   // the program gave it no name of its own
	Text      string // all that tools need to know of it
}

// Declared is a rule of the fleet.
type Declared struct {
	Text      string
	Processes []string  // that declare it now: see Process.String; of a second client of a program, with its number
	Seen      time.Time // when the last process declared it
}

// ruleSet are the rules of a process. Processes of one build have the same set, which is written once.
type ruleSet struct {
	At      time.Time `json:"at"`
	Program string    `json:"program"`
	Rules   []string  `json:"rules"`             // their texts, hashed
	Unnamed []string  `json:"unnamed,omitempty"` // the names and tags of those without a name, hashed
}

const maxSets = perCommand

// self is this process as the others see it.
type self struct {
	id                   string
	rules                map[[2]string]Rule
	limiters             map[string]int // how many live, by the fingerprints of their secrets
	news                 bool           // some of the rules have not been written
	setID                string         // identifies the set that was written last
	said                 string         // the last word of this process
	failure              error          // the last error of a decision; nil if decisions work
	failedAt             time.Time
	beating              bool
	hidden               bool      // nothing beats, and this process is not listed
	watches              bool      // settings are followed, although no rule may be declared
	beats                int       // how many beats there were
	again                time.Time // when new rules can be written next
	pause                time.Duration
	sets                 int64     // how many sets there were
	texts                int64     // how many texts of rules there were
	warned               bool      // that another program has the same rules
	asked, answered      string    // the last word that a tool asked by, and that this process has answered
	answerAt, answeredAt time.Time // when to answer asked, and when the last answer was made
}

// Hide keeps this process from being listed, for a tool. Nothing beats.
func (f *Fleet) Hide() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.self.beating, f.self.hidden = true, true
}

// Register declares a rule of this process. It starts the beat.
func (f *Fleet) Register(rule Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.self
	id := [2]string{rule.Name, rule.Tag}
	if before, known := s.rules[id]; before == rule || !known && len(s.rules) >= MaxRules || len(rule.Text) > MaxText {
		return
	}
	s.rules[id], s.news = rule, true
	f.startBeat()
}

// Watch makes this process follow settings. Without a rule it is not listed.
func (f *Fleet) Watch() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.self.watches = true
	f.startBeat()
}

// watches reports whether this process only follows settings.
func (f *Fleet) watches() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.self.watches && len(f.self.rules) == 0
}

func hashed(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\n")))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// own returns the set of this process, its identity, and the texts of the rules by their hashes.
func (f *Fleet) own() (own ruleSet, id string, texts map[string]string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	own, texts = ruleSet{At: f.Now().UTC().Truncate(time.Second), Program: program().Program}, map[string]string{}
	for _, r := range f.self.rules {
		texts[hashed(r.Text)] = r.Text
		if r.Unnamed {
			own.Unnamed = append(own.Unnamed, hashed(r.Name, r.Tag))
		}
	}
	own.Rules = slices.Sorted(maps.Keys(texts))
	slices.Sort(own.Unnamed)
	return own, hashed(append(own.Rules, own.Program)...), texts
}

// declare writes the rules of this process, and those of their texts that the store does not have.
func (f *Fleet) declare(ctx context.Context) error {
	f.mu.Lock()
	f.self.news = false
	f.mu.Unlock()
	if _, err := f.clock(ctx); err != nil {
		return err
	}
	own, id, texts := f.own()
	text, _ := json.Marshal(own) // texts and a time: it never fails
	replies, err := f.do(ctx, Command{"HSET", f.keys.sets, id, text},
		Command{"PEXPIRE", f.keys.sets, seenLife.Milliseconds()}, Command{"PEXPIRE", f.keys.rules, seenLife.Milliseconds()})
	if err != nil {
		return err
	}
	f.self.setID = id
	if err := f.leaveOut(ctx, own.Rules, texts); err != nil || len(texts) == 0 && replies[0] != int64(1) {
		return err
	}
	return f.writeRules(ctx, texts)
}

// leaveOut removes the texts that the store has.
func (f *Fleet) leaveOut(ctx context.Context, ids []string, own map[string]string) error {
	for some := range slices.Chunk(ids, perCommand) {
		replies, err := f.do(ctx, command("HMGET", f.keys.rules, some...))
		if err != nil {
			return err
		}
		for i, text := range texts(replies[0]) {
			if text == own[some[i]] {
				delete(own, some[i])
			}
		}
	}
	return nil
}

// writeRules writes the texts of rules, after it removed those that no set has.
func (f *Fleet) writeRules(ctx context.Context, texts map[string]string) error {
	unused := map[string]bool{}
	err := f.scan(ctx, f.keys.rules, perBeat, 4*MaxRules, func(id, _ string) { unused[id] = true })
	if err != nil {
		return err
	}
	sets, err := f.sets(ctx, true)
	if err != nil {
		return err
	}
	have := len(unused)
	for _, s := range sets {
		for _, id := range s.Rules {
			delete(unused, id)
		}
	}
	if err := f.remove(ctx, f.keys.rules, slices.Collect(maps.Keys(unused))); err != nil {
		return err
	}
	if have-len(unused)+len(texts) > 2*MaxRules {
		f.warn("the programs of this prefix declare over 2,000 rules; tools do not see all of them")
		return nil
	}
	for some := range slices.Chunk(slices.Sorted(maps.Keys(texts)), perCommand) {
		set := Command{"HSET", f.keys.rules}
		for _, id := range some {
			set = append(set, id, texts[id])
		}
		if _, err := f.do(ctx, set, Command{"PEXPIRE", f.keys.rules, seenLife.Milliseconds()}); err != nil {
			return err
		}
	}
	return nil
}

// sets returns the sets of all processes. If prune is true, it removes those that no process has declared for a day, and the oldest of too many.
func (f *Fleet) sets(ctx context.Context, prune bool) (map[string]ruleSet, error) {
	all, oldest := map[string]ruleSet{}, f.Now().Add(-seenLife)
	err := f.scan(ctx, f.keys.sets, perBeat, 2*maxSets, func(id, text string) {
		var s ruleSet
		if len(text) > MaxRules*MaxText/10 || json.Unmarshal([]byte(text), &s) != nil {
			s = ruleSet{}
		}
		all[id] = s
	})
	if err != nil || !prune {
		return all, err
	}
	ids := slices.SortedFunc(maps.Keys(all), func(a, b string) int { return all[b].At.Compare(all[a].At) })
	var gone []string
	for i, id := range ids {
		if i >= maxSets || all[id].At.Before(oldest) {
			gone = append(gone, id)
			delete(all, id)
		}
	}
	return all, f.remove(ctx, f.keys.sets, gone)
}

// programsOf returns the programs that declare each rule without a name, by the hashes of the rules.
func programsOf(sets map[string]ruleSet) map[string][]string {
	programs := map[string][]string{}
	for _, s := range sets {
		for _, id := range s.Unnamed {
			if !slices.Contains(programs[id], s.Program) {
				programs[id] = append(programs[id], s.Program)
			}
		}
	}
	return programs
}

// warnOf logs once if another program has a rule of the same name by chance.
func (f *Fleet) warnOf(sets map[string]ruleSet) {
	programs := programsOf(sets)
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.self.rules {
		for _, other := range programs[hashed(r.Name, r.Tag)] {
			if r.Unnamed && other != program().Program && !f.self.warned {
				f.self.warned = true
				f.warn("two programs share the counts of a rule without a name; give each program a prefix of its own by ratelimit.WithPrefix",
					"rule", r.Name, "program", program().Program, "other", other)
			}
		}
	}
}

// Rules returns the rules that processes of the fleet declare, or declared within a day.
func (f *Fleet) Rules(ctx context.Context) ([]Declared, error) {
	return beside(ctx, f, func() (all []Declared, err error) {
		if f.server == nil {
			own, _, texts := f.own()
			for _, id := range own.Rules {
				all = append(all, Declared{texts[id], []string{program().String()}, own.At})
			}
			return all, nil
		}
		sets, err := f.sets(ctx, false)
		if err != nil {
			return nil, err
		}
		processes, err := f.lately(ctx)
		if err != nil {
			return nil, err
		}
		by := declaredBy(sets, processes)
		err = f.scan(ctx, f.keys.rules, perScan, 4*MaxRules, func(id, text string) {
			if d := by[id]; d != nil && len(text) <= MaxText {
				d.Text = text
				all = append(all, *d)
				delete(by, id)
			}
		})
		return all, err
	})
}

// declaredBy returns who declares each rule, by the hashes of their texts.
func declaredBy(sets map[string]ruleSet, processes []Process) map[string]*Declared {
	declare, seen := map[string][]string{}, map[string]time.Time{} // by set
	for id, s := range sets {
		seen[id] = s.At
	}
	clients := map[string]int{}
	for _, p := range processes {
		name := p.String()
		if clients[name]++; clients[name] > 1 { // each client of a program is a process of its own
			name = fmt.Sprintf("%s, client %d", name, clients[name])
		}
		if declare[p.Rules] = append(declare[p.Rules], name); p.At.After(seen[p.Rules]) {
			seen[p.Rules] = p.At
		}
	}
	by := map[string]*Declared{}
	for id, s := range sets {
		for _, rule := range s.Rules {
			d := by[rule]
			if d == nil {
				d = new(Declared)
				by[rule] = d
			}
			if d.Processes = append(slices.Clip(d.Processes), declare[id]...); seen[id].After(d.Seen) {
				d.Seen = seen[id]
			}
		}
	}
	return by
}
