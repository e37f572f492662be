package operate

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Judgement is what is wrong with a prefix, and what else is worth knowing of its servers.
type Judgement struct {
	Problems []Problem // the worst first; all is well if there is none
	Facts    []Fact
	At       Seen // of what was read longest ago

	Health     fleet.Health // by which the store was judged
	HealthSeen Seen
}

// Judge says what is wrong. Everybody who looks at a prefix goes by it.
func (p *Prefix) Judge(ctx context.Context) Judgement {
	f := new(findings)
	health, answered := p.health.Get(ctx) // first, so that nothing else keeps it waiting
	begin := []func() <-chan struct{}{p.servers.read, p.processes.read, p.rules.read, p.reports.read, p.history.read, p.shared.read, p.pauses.read}
	for _, read := range begin { // all at once: on a slow store, one after the other takes longer than people wait
		read()
	}
	servers, at := p.servers.Get(ctx)
	if at.Err == nil {
		for i := range servers {
			servers[i].judge(f)
		}
	}
	at = at.Worse(answered)
	p.judgeStore(f, health, answered)
	p.trips.judge(f)
	followed := p.Follow(ctx)
	processes, read := p.processes.Get(ctx)
	at = at.Worse(read).Worse(followed)
	p.judgeProcesses(f, processes, read)
	rules, read := p.rules.Get(ctx)
	at = at.Worse(read)
	if !read.Never() {
		p.judgeSettings(f, rules, allHash(processes))
		judgeLimits(f, rules)
	}
	if shared, read := p.shared.Get(ctx); read.Err == nil && len(shared) > 0 {
		f.add(ProgramShared, Warning, strings.Join(shared, " and "), "these programs have a rule without a name that is called the same, so they share its counts",
			"give each program a prefix of its own by ratelimit.WithPrefix")
	}
	p.judgeTraffic(ctx, f)
	p.judgePauses(ctx, f)
	f.blameDenials(processes, rules, at.Err == nil)
	if at.Err == nil && len(processes) == 0 {
		f.facts = append(f.facts, Fact{"", "processes", "none of prefix " + p.name + " reports"})
	}
	f.judgeUnread(followed, at)
	return Judgement{f.sorted(), f.facts, at, health, answered}
}

// judgeStore judges whether the store answers, and what the limiter of this process has found.
func (p *Prefix) judgeStore(f *findings, health fleet.Health, read Seen) {
	const advice = "check whether the server runs, and its address and password; failure policies decide meanwhile"
	switch at, err := p.fleet.StoreFailure(); {
	case read.IsSlow():
		f.add(StoreSlow, Warning, "", "the server answers slowly: "+read.Err.Error(), "run the programs near the server, and see whether it is busy")
	case read.Err != nil:
		f.storeError("", fmt.Sprintf("the store does not answer: %v", read.Err), advice, read.Err.Error())
	case err != nil && p.Now().Sub(at) <= failingFor:
		f.storeError("", fmt.Sprintf("a decision of this process failed at %s: %v", LocalTime(at), err), advice, err.Error())
	case health.Full:
		f.storeError("", "the server's memory is full", advice, "memory is full")
	}
}

// judgeUnread says what cannot be read, though the store answers.
func (f *findings) judgeUnread(followed, all Seen) {
	ofStore := func(p Problem) bool { return slices.Contains([]string{StoreDown, StoreSlow, MemoryFull}, p.ID) }
	switch {
	case all.Err == nil || slices.ContainsFunc(f.problems, ofStore):
	case followed.Err != nil:
		f.add(SettingsStale, Warning, "", fmt.Sprintf("overrides, blocks and pauses cannot be read: %v", followed.Err), "permit what ratelimitctl acl prints")
	case all.IsSlow():
		f.add(StoreSlow, Warning, "", "not all is known: "+all.Err.Error(), "look again, and see whether the server is busy")
	default:
		f.add(StoreDown, Warning, "", fmt.Sprintf("not all is known: %v", all.Err), "permit what ratelimitctl acl -operator prints")
	}
}

// failingFor is how long after their last failure decisions count as failing, if the store answers the process otherwise. A process without calls cannot
// find out whether they work again, and its beats do not need all that decisions need, such as EVAL. So the failure is a note then, and after an hour
// nothing.
const failingFor = time.Minute

// callsFail reports whether a process says that calls fail.
func callsFail(p *fleet.Process) bool { return p.Store != "" && p.SinceFailure() <= failingFor }

// storeError adds an error of a store. That of a full memory says so.
func (f *findings) storeError(subject, text, advice, cause string) {
	if strings.Contains(cause, "OOM ") || strings.Contains(cause, "memory is full") {
		f.add(MemoryFull, Bad, subject, strings.TrimSuffix(text, ".")+": calls fail", "raise maxmemory, or find out by ratelimitctl top who makes the keys")
		return
	}
	f.add(StoreDown, Bad, subject, text, advice)
}

// maxSkew is how far apart two clocks may be.
const maxSkew = 500 * time.Millisecond

// manyLimiters is how many limiters of a prefix a process should not have.
const manyLimiters = 100

func (p *Prefix) judgeProcesses(f *findings, processes []fleet.Process, read Seen) {
	builds, secrets, limiters := map[string]map[string]int{}, map[string]string{}, map[string]int{}
	counted := map[[3]string]bool{} // a process may have several clients, of which each reports
	for i := range processes {
		one := &processes[i]
		name := one.String()
		switch {
		case read.Err != nil: // what a process said before, it perhaps does not say any more
		case callsFail(one):
			f.storeError(name, one.Store, "see its log", one.Store)
		case one.Store != "" && one.SinceFailure() <= recent:
			f.add(StoreDown, Note, name, one.Store+"; no decision has failed since, and the store answers the process", "see its log")
		}
		switch {
		case one.Setting != "":
			f.add(SettingsStale, Warning, name, one.Setting+": it goes on with the settings that it read before", "permit what ratelimitctl acl prints")
		case read.Err == nil && p.newest.isOld(one, p.Now()):
			f.add(SettingsStale, Warning, name, "it does not follow the newest overrides, blocks and pauses", "see its log, and whether its machine is overloaded")
		}
		if one.Ahead.Abs() > maxSkew {
			f.add(ClockOff, Warning, name, fmt.Sprintf("its clock is %s the store's: limits and settings go by the store's clock, but its log has other times", Ahead(one.Ahead)),
				"synchronize it by NTP")
		}
		if before := limiters[name]; before <= manyLimiters && before+one.Limiters > manyLimiters {
			f.add(LimitersMany, Warning, name, fmt.Sprintf("it has over %d limiters of this prefix: each costs the servers many commands", manyLimiters),
				"make one store and one limiter when the program starts, and keep them")
		}
		limiters[name] += one.Limiters
		if builds[one.Program] == nil {
			builds[one.Program] = map[string]int{}
		}
		if id := [3]string{one.Program, one.Build, name}; !counted[id] {
			counted[id] = true
			builds[one.Program][one.Build]++
		}
		for _, secret := range one.Secrets {
			secrets[secret] = cmp.Or(secrets[secret], name)
		}
	}
	judgeBuilds(f, builds)
	p.judgeSecrets(f, secrets)
	if lost := p.lossOf(processes).what(); lost != "" {
		f.add(SettingsLost, Warning, "", lost+"; processes that start do not know them", "run ratelimitctl settings recover")
	}
}

func judgeBuilds(f *findings, builds map[string]map[string]int) {
	for _, program := range slices.Sorted(maps.Keys(builds)) {
		by := builds[program]
		if len(by) < 2 {
			continue
		}
		var texts []string
		for _, build := range slices.Sorted(maps.Keys(by)) {
			texts = append(texts, fmt.Sprintf("%s (%s)", build, Count(by[build], "process")))
		}
		f.add(BuildsDiffer, Note, program, "several builds run: "+strings.Join(texts, ", "), "finish the deployment")
	}
}

// judgeSettings judges the settings in force. hashes reports whether the programs hash keys.
func (p *Prefix) judgeSettings(f *findings, rules []ratelimit.UsedRule, hashes bool) {
	for _, err := range p.fleet.Status().Malformed {
		f.add(SettingUnusable, Warning, "", err.Error()+"; an earlier one stays in force", "set it again, or clear it")
	}
	named, modeOf, whys := byName(rules), p.modesOf(rules), map[string]string{}
	for s := range p.fleet.InForce().All() {
		shown := key.Shown(s.Key)
		subject := strings.TrimSpace(s.Rule + " " + shown)
		set := Values(s.Kind, &s.Values) + ", " + SetBy(s.By, s.At)
		isText := s.Match && strings.HasSuffix(s.Key, "*")
		mode := ""
		if s.Kind != fleet.Override {
			var ofKey bool
			if mode, ofKey, _ = modeOf(s.Rule, shown); ofKey && mode != "" {
				mode += " for it"
			}
		}
		alike := fmt.Sprint(s.Kind, " ", s.Rule, " ", s.AllKeys, " ", isText, " ", mode, " ", Arguments(&s.Values)) // there may be thousands, for as many keys
		why, known := whys[alike]
		if !known {
			of := named(s.Rule)
			isPlain := func(r ratelimit.UsedRule) bool { return r.Hash == ratelimit.HashNever }
			if why = p.useless(s, of, mode); why == "" && isText && hashes && !slices.ContainsFunc(of, isPlain) {
				why = "the keys are hashed, so no text matches them"
			}
			whys[alike] = why
		}
		switch {
		case why != "":
			f.add(SettingUnusable, Warning, subject, set+", has no effect: "+why, "clear it by "+undoing(s))
		case s.Kind == fleet.Override && s.Until.IsZero():
			f.add(SettingEndless, Note, subject, set+Because(s.Reason)+", has no end", "write the value into the program, and clear it by "+undoing(s))
		}
	}
}

// undoing is the command that ends a setting. A key is a caller's text, so it is quoted for a shell.
func undoing(s *fleet.Setting) string {
	rule, of := word(s.Rule), ""
	switch name := word(key.Shown(s.Key)); {
	case s.AllKeys:
	case s.Match:
		of = " -shown -match " + name
	case s.Kind == fleet.Override:
		of = " -shown -key " + name
	case name != "":
		of = " -shown -- " + name
	}
	switch s.Kind {
	case fleet.Block:
		return "ratelimitctl unblock " + rule + of
	case fleet.Pause:
		return "ratelimitctl resume " + rule + of
	}
	return "ratelimitctl override clear " + rule + of
}

// useless says why a setting has no effect on the rules of its name, or returns "". mode is theirs, if all of them refuse nobody.
func (p *Prefix) useless(s *fleet.Setting, rules []ratelimit.UsedRule, mode string) string {
	switch {
	case len(rules) == 0 && p.fleet.Status().Lost > 0:
		return "" // the store has perhaps lost the rules, too
	case len(rules) == 0:
		return "no program has used a rule of this name within a day"
	case s.Kind != fleet.Override && mode != "":
		return "the rule is in mode " + mode
	case s.Kind != fleet.Override:
		return ""
	}
	for _, r := range rules {
		if err := p.tryRule(r.Rule, s, "", p.fleet.InForce()); err != nil {
			return err.Error()
		}
	}
	return ""
}

// judgeLimits finds rules that processes declare differently. A process that has used only some of the rules of a name does not differ.
func judgeLimits(f *findings, rules []ratelimit.UsedRule) {
	declared := map[string]map[string][]string{} // the limits of a rule, by process
	for _, r := range rules {
		if declared[r.Name] == nil {
			declared[r.Name] = map[string][]string{}
		}
		for limit, processes := range r.DeclaredBy {
			rule := r.Rule
			rule.Limit = limit
			for _, process := range processes {
				declared[r.Name][process] = append(declared[r.Name][process], Limit(rule))
			}
		}
	}
	for _, rule := range slices.Sorted(maps.Keys(declared)) {
		if texts := differing(declared[rule]); len(texts) > 1 {
			f.add(LimitsDiffer, Warning, rule, strings.Join(texts, "; "), "finish the deployment, or give the programs one limit")
		}
	}
}

// differing returns a text for each set of limits that processes declare and that is no part of another: "shop 4711 on web-1 has 5 per hour".
func differing(declared map[string][]string) (texts []string) {
	first := map[string]string{} // the first process that declares some limits, by these limits
	for _, process := range slices.Sorted(maps.Keys(declared)) {
		slices.Sort(declared[process])
		text := strings.Join(slices.Compact(declared[process]), " and ")
		first[text] = cmp.Or(first[text], process)
	}
	for _, limits := range slices.Sorted(maps.Keys(first)) {
		isPart := false
		for other, process := range first {
			lacks := func(limit string) bool { return !slices.Contains(declared[process], limit) }
			isPart = isPart || other != limits && !slices.ContainsFunc(declared[first[limits]], lacks)
		}
		if !isPart {
			texts = append(texts, first[limits]+" has "+limits)
		}
	}
	return texts
}

const (
	mostRefused   = 0.9
	leastCalls    = 100
	judgedTraffic = time.Minute
)

// judgeTraffic finds rules that refuse nearly all of their calls.
func (p *Prefix) judgeTraffic(ctx context.Context, f *findings) {
	slots, at := p.history.Get(ctx)
	if at.Err != nil {
		return // what was read before is not of the last minute
	}
	p.reports.Get(ctx) // for RuleOf
	calls, refused := map[string]int64{}, map[string]int64{}
	for _, slot := range slots[max(0, len(slots)-int(judgedTraffic/fleet.SlotLength)-1):] {
		for _, r := range slot.Rules {
			rule := p.RuleOf(traffic.Named{Rule: r.Name, Window: r.Tag})
			calls[rule], refused[rule] = calls[rule]+r.Calls, refused[rule]+r.Refused
		}
	}
	for rule, n := range calls {
		if share := float64(refused[rule]) / float64(n); n >= leastCalls && share > mostRefused {
			f.add(RefusesMost, Warning, rule, fmt.Sprintf("%.0f %% of %s calls were refused within a minute", 100*share, Number(n)),
				"see by ratelimitctl top who calls, by ratelimitctl rules which limit is in force, and by ratelimitctl blocked and paused what else refuses")
		}
	}
}

// judgePauses finds pauses that far sides asked for.
func (p *Prefix) judgePauses(ctx context.Context, f *findings) {
	noted, _ := p.pauses.Get(ctx)
	type paused struct {
		keys   int
		since  time.Time
		latest Refusal
	}
	by := map[string]paused{}
	for _, one := range noted.all {
		if !one.FarSide {
			continue
		}
		of := by[one.Rule]
		of.keys++
		if of.since.IsZero() || one.Since.Before(of.since) {
			of.since = one.Since
		}
		if one.Until.After(of.latest.Until) {
			of.latest = one
		}
		by[one.Rule] = of
	}
	for rule, of := range by {
		f.add(PausedByFarSide, Warning, rule, fmt.Sprintf("the far side has paused %s, the last until %s", Count(of.keys, "key"), LocalTime(of.latest.Until)),
			"see ratelimitctl paused "+word(rule)+", and ask the far side; ratelimitctl resume ends a pause")
		f.problems[len(f.problems)-1].Since = of.since
	}
}

// newest is when this process first knew of the newest setting.
type newest struct {
	mu      sync.Mutex
	version int64
	at      time.Time // by the store's clock
}

func (n *newest) note(f *fleet.Fleet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if version := f.Status().Version; version != n.version {
		n.version, n.at = version, f.Now()
	}
}

// staleAfter is how long after a setting a process may still say that it follows older ones.
const staleAfter = 2 * Within

// isOld reports whether a process does not follow a setting of some time ago. If it has said nothing for a while, the setting may be new to who looks.
func (n *newest) isOld(p *fleet.Process, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return p.Version < n.version && (now.Sub(n.at) > staleAfter || now.Sub(p.At) > SilentAfter)
}
