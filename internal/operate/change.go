package operate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// MaxBlock is the longest block and the longest pause.
const MaxBlock = decide.MaxBlock

// Target says whose settings or counts a change is for. For example, the Rule "login" with the keys "ann" and "bob".
type Target struct {
	Rule  string   // the name of the rules, or a glob such as shop.*
	Only  string   // the ID of the only rule whose counts change; "" means all of the name
	Keys  []string // none means everybody, or all keys of an override
	Match string   // in place of Keys: a network such as 203.0.113.0/24, or a text such as ann*, which stands for all keys that it matches
	Shown bool     // the keys are as errors and pages show them
	Force bool     // accept a rule that no program uses, and values that the rule cannot have
}

// keys returns the keys, or "" for everybody.
func (t *Target) keys() []Key {
	all := make([]Key, 0, len(t.Keys))
	for _, text := range t.Keys {
		all = append(all, Key{Text: text, Shown: t.Shown})
	}
	if t.Match != "" {
		all = append(all, Key{Text: t.Match, Shown: t.Shown, Match: true})
	}
	if len(all) == 0 {
		all = append(all, Key{})
	}
	return all
}

// Wrong is the error of a change that cannot be made as it was asked for.
type Wrong string

func (w Wrong) Error() string { return string(w) }

func wrongf(format string, args ...any) error { return Wrong(fmt.Sprintf(format, args...)) }

// checkActor returns an error if an actor cannot be noted.
func checkActor(by fleet.Actor) error {
	if wrong := by.Check(); wrong != "" {
		return Wrong(wrong)
	}
	return nil
}

// Changed is a setting that a change made or ended. The values are nil where nothing is set.
type Changed struct {
	Kind   fleet.Kind    `json:"kind"`
	Rule   string        `json:"rule"`
	Key    string        `json:"key,omitempty"`   // as errors show it
	Match  bool          `json:"match,omitempty"` // Key stands for all keys that it matches
	Before *fleet.Values `json:"before"`
	After  *fleet.Values `json:"after"`
}

// Done is what a change did.
type Done struct {
	Changed []Changed
	Notes   []string // what to know besides, such as that a rule in shadow mode refuses nobody
}

// keyed are the requests of one key under the rules of a target.
type keyed struct {
	key      Key
	requests []ratelimit.Request
	byGlob   []ratelimit.Request // of the rules of a glob, which is the rule of requests
}

// requestsOf returns the requests for the keys of a target. A rule that has a template of keys needs a key.
func (p *Prefix) requestsOf(ctx context.Context, t *Target, rules []ratelimit.UsedRule) (all []keyed, err error) {
	rules = slices.DeleteFunc(slices.Clone(rules), func(r ratelimit.UsedRule) bool {
		return fleet.SettingName(t.Rule) != t.Rule && r.Name != t.Rule && r.Name != fleet.SettingName(t.Rule) || t.Only != "" && ID(r.Rule) != t.Only
	})
	if len(rules) == 0 {
		return nil, Wrong("the rule is unknown; choose one of the list")
	}
	for _, k := range t.keys() {
		if err := p.checkSecret(ctx, k, rules); err != nil && !t.Force {
			return nil, err
		}
		of := keyed{key: k}
		for _, r := range rules {
			if err := NeedsKey(r.Rule, k); err != nil {
				return nil, err
			}
			of.requests = append(of.requests, k.request(r.Rule))
		}
		if fleet.IsGlob(t.Rule) {
			of.byGlob, of.requests = of.requests, []ratelimit.Request{k.request(ratelimit.Rule{Name: t.Rule})}
		}
		all = append(all, of)
	}
	return all, nil
}

// request returns a request for the key.
func (k Key) request(r ratelimit.Rule) ratelimit.Request {
	if k.Match {
		return ratelimit.Request{Rule: r, Match: k.Text}
	}
	return ratelimit.Request{Rule: r, Key: k.Text}
}

// NeedsKey returns an error if a rule counts by key, and there is no key. A rule without a template counts by whatever key a request has.
func NeedsKey(r ratelimit.Rule, k Key) error {
	if r.Key != "" && k.Text == "" {
		return wrongf("rule %s counts by %s: name a key", r.Name, r.Key)
	}
	return nil
}

// Block refuses keys for some time.
func (p *Prefix) Block(ctx context.Context, by fleet.Actor, t Target, d time.Duration) (Done, error) {
	return p.edit(ctx, by, t, fleet.Block, p.harmlessBlocks, func(ctx context.Context, l *ratelimit.Limiter, all []keyed) error {
		return l.Block(ctx, d, firstOfEach(all)...)
	})
}

// Unblock ends blocks. Done says which keys the block= of a rule goes on refusing.
func (p *Prefix) Unblock(ctx context.Context, by fleet.Actor, t Target) (Done, error) {
	p.allowUnused(ctx, &t)
	return p.edit(ctx, by, t, fleet.Block, p.blocksThatGoOn, func(ctx context.Context, l *ratelimit.Limiter, all []keyed) error {
		return l.Unblock(ctx, firstOfEach(all)...)
	})
}

// Pause pauses keys for some time.
func (p *Prefix) Pause(ctx context.Context, by fleet.Actor, t Target, d time.Duration) (Done, error) {
	return p.edit(ctx, by, t, fleet.Pause, nil, func(ctx context.Context, l *ratelimit.Limiter, all []keyed) error {
		return l.Pause(ctx, d, allOf(all)...)
	})
}

// Resume ends pauses.
func (p *Prefix) Resume(ctx context.Context, by fleet.Actor, t Target) (Done, error) {
	p.allowUnused(ctx, &t)
	return p.edit(ctx, by, t, fleet.Pause, nil, func(ctx context.Context, l *ratelimit.Limiter, all []keyed) error {
		return l.Resume(ctx, allOf(all)...)
	})
}

// edit begins or ends blocks or pauses by do, and then asks for notes, unless that is nil.
func (p *Prefix) edit(ctx context.Context, by fleet.Actor, t Target, kind fleet.Kind, notes func(context.Context, []keyed) ([]string, error),
	do func(context.Context, *ratelimit.Limiter, []keyed) error) (done Done, err error) {
	if err := checkActor(by); err != nil {
		return done, err
	}
	rules, err := p.ofSettings(ctx, t.Rule, t.Force)
	if err != nil {
		return done, err
	}
	t.Only = "" // a setting is for all rules of the name
	all, err := p.requestsOf(ctx, &t, rules)
	if err != nil {
		return done, err
	}
	if at := p.Follow(ctx); at.Err != nil {
		return done, at.Err
	}
	done.Changed = make([]Changed, len(all))
	for i, of := range all {
		c := &done.Changed[i]
		c.Kind, c.Rule, c.Match = kind, fleet.SettingName(t.Rule), of.key.Match
		if c.Key, c.Before, err = p.settingOf(ctx, kind, of); err != nil {
			return done, err
		}
	}
	if err := do(ratelimit.WithActor(ctx, by.By, by.Reason), p.limiterFor(Key{Shown: t.Shown}), all); err != nil {
		return done, err
	}
	p.forget()
	for i, of := range all {
		if _, done.Changed[i].After, err = p.settingOf(ctx, kind, of); err != nil {
			return done, err
		}
	}
	if notes != nil {
		done.Notes, err = notes(ctx, all)
	}
	return done, err
}

// forget makes the next look read what a change may have changed.
func (p *Prefix) forget() {
	p.changes.forget()
	p.pauses.forget()
	p.blocks.forget()
}

// firstOfEach returns a request for each key. A block is one for all rules of a name.
func firstOfEach(all []keyed) (first []ratelimit.Request) {
	for _, of := range all {
		first = append(first, of.requests[0])
	}
	return first
}

func allOf(all []keyed) (requests []ratelimit.Request) {
	for _, of := range all {
		requests = append(requests, of.requests...)
	}
	return requests
}

// settingOf returns a key as errors show it, and its block or its pause, or nil. A rule with pause= has its pauses beside its counts.
func (p *Prefix) settingOf(ctx context.Context, kind fleet.Kind, of keyed) (shown string, _ *fleet.Values, err error) {
	for _, q := range of.requests {
		one := &fleet.Setting{Kind: kind, Rule: fleet.SettingName(q.Rule.Name), Cleared: true} // it is only looked for
		if err := p.setKey(one, q.Rule, of.key); err != nil {
			return "", nil, err
		}
		shown = key.Shown(one.Key)
		if s := p.fleet.InForce().Like(one); s != nil {
			return shown, &s.Values, nil
		}
		if kind != fleet.Pause || !q.Rule.Pausable || one.Match {
			continue
		}
		use, err := p.useOf(ctx, q, of.key)
		if err != nil {
			return shown, nil, err
		}
		for _, r := range use.Refusals {
			if r.Kind == fleet.Pause {
				return shown, &fleet.Values{Until: r.Until}, nil
			}
		}
	}
	return shown, nil, nil
}

// setKey gives a setting the key of a rule, or the pattern of its keys. A text matches no key that is hashed, but a setting with one can be cleared.
func (p *Prefix) setKey(s *fleet.Setting, r ratelimit.Rule, k Key) (err error) {
	if s.Match = k.Match; !k.Match {
		s.Key = p.subjectOf(r, k)
		return nil
	}
	hashed := r.Hash == ratelimit.HashSubject && !fleet.IsGlob(s.Rule) && !s.Cleared
	s.Key, err = (*decide.Limiter)(p.limiterFor(k)).ParseMatch(k.Text, hashed)
	if err != nil {
		err = &ratelimit.RuleError{Rule: s.Rule, Argument: "match", Reason: err.Error()}
	}
	return err
}

// harmlessBlocks returns a note if none of the requests is refused while its key is blocked. The mode of some keys may be overridden.
func (p *Prefix) harmlessBlocks(_ context.Context, all []keyed) (notes []string, err error) {
	for _, of := range all {
		for _, q := range slices.Concat(of.requests, of.byGlob) {
			if fleet.IsGlob(q.Rule.Name) {
				continue
			}
			q.Key, q.Match = of.key.Text, ""
			now, err := p.limiterFor(of.key).RuleFor(q)
			if err != nil || now.Mode == ratelimit.ModeEnforce {
				return nil, err
			}
			all, _ := p.shown.RuleFor(ratelimit.Request{Rule: q.Rule})
			harmless := Refusal{Rule: q.Rule.Name, Key: key.Shown(p.subjectOf(q.Rule, of.key)), Mode: now.Mode.String(), keyMode: all.Mode != now.Mode}
			notes = []string{harmless.Harmless()}
		}
	}
	return notes, nil
}

// blocksThatGoOn returns a note for each request whose key is blocked by the block= of its rule.
func (p *Prefix) blocksThatGoOn(ctx context.Context, all []keyed) (notes []string, err error) {
	for _, of := range all {
		for _, q := range of.requests {
			if q.Rule.Block == 0 || q.Match != "" {
				continue
			}
			use, err := p.useOf(ctx, q, of.key)
			if err != nil {
				return nil, err
			}
			for _, r := range use.Refusals {
				if r.ByRule {
					notes = append(notes, fmt.Sprintf("the block= of rule %s still refuses %s until %s; reset ends that", r.Rule, keyInWords(r.Key), LocalTime(r.Until)))
				}
			}
		}
	}
	return notes, nil
}
