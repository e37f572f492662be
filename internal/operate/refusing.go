package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/traffic"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Refusal is what refuses the calls of a key, or of all keys, besides a count. For example, kim blocked eve under "login" for an hour: Kind is
// fleet.Block, By "kim", and Until an hour after Since.
type Refusal struct {
	Kind    fleet.Kind `json:"kind"` // an override that refuses has the limit 0
	Rule    string     `json:"rule"`
	Key     string     `json:"key,omitempty"`   // as errors show it; "" means all keys
	Match   bool       `json:"match,omitempty"` // Key is a network or a text such as ann*, which stands for all keys that it matches
	Since   time.Time  `json:"since,omitzero"`
	Until   time.Time  `json:"until,omitzero"` // by the store's clock, like Since; zero means for ever
	By      string     `json:"by,omitempty"`
	Reason  string     `json:"reason,omitempty"`
	ByRule  bool       `json:"byRule,omitempty"`  // a refusal by the rule began the block, since the rule has block=
	Nth     int        `json:"nth,omitempty"`     // which block of the rule within a day that is, if that is known
	FarSide bool       `json:"farSide,omitempty"` // an answer of the far side began the pause, since the rule has pause=
	Mode    string     `json:"mode,omitempty"`    // of the rule for the key, if it refuses nobody: "shadow"
	keyMode bool       // the rule has another mode for other keys
}

// Who says who refuses: "kim", "the rule's block=", "the far side, told to shop 4711 on web-1".
func (r *Refusal) Who() string {
	switch {
	case r.ByRule:
		return "the rule's block="
	case r.FarSide && r.By != "":
		return "the far side, told to " + r.By
	case r.FarSide:
		return "the far side"
	}
	return cmp.Or(r.By, "a program")
}

// Refusing is all that refuses, besides counts.
type Refusing struct {
	All  []Refusal `json:"refusals"`
	More string    `json:"more,omitempty"` // why there may be more
	At   Seen      `json:"-"`
}

// Refusing returns what refuses under the rules of a name, or under all for "": overrides of limit 0, blocks and pauses, by whom, why, and until
// when. Kinds says which of these; without any it is all. They are sorted by rule and key.
func (p *Prefix) Refusing(ctx context.Context, rule string, kinds ...fleet.Kind) (r Refusing) {
	wants := func(kind fleet.Kind) bool { return len(kinds) == 0 || slices.Contains(kinds, kind) }
	r.At = p.Follow(ctx)
	rules, at := p.rules.Get(ctx)
	r.At = r.At.Worse(at)
	for s := range p.fleet.InForce().All() {
		if wants(s.Kind) && (s.Kind != fleet.Override || s.Limit != nil && *s.Limit == 0) {
			one := refusalOf(s)
			one.Mode = s.Mode // an override may set it
			r.All = append(r.All, one)
		}
	}
	if wants(fleet.Pause) {
		noted, at := p.pauses.Get(ctx)
		r.All, r.At = append(r.All, noted.all...), r.At.Worse(at)
		if noted.more > 0 {
			r.More = fmt.Sprintf("and %s more, which end sooner", Count(noted.more, "pause"))
		}
	}
	if wants(fleet.Block) {
		begun, at := p.blocks.Get(ctx)
		r.All, r.At, r.More = append(r.All, begun.all...), r.At.Worse(at), cmp.Or(r.More, begun.more)
	}
	r.All = slices.DeleteFunc(r.All, func(one Refusal) bool {
		if hasEnded := !one.Until.IsZero() && !one.Until.After(p.Now()); hasEnded { // since it was read
			return true
		}
		return rule != "" && !isNamed(one.Rule, fleet.SettingName(rule)) && !fleet.Covers(one.Rule, fleet.SettingName(rule)) && one.Rule != rule
	})
	p.setModes(r.All, rules)
	slices.SortStableFunc(r.All, func(a, b Refusal) int {
		return cmp.Or(strings.Compare(a.Rule, b.Rule), strings.Compare(a.Key, b.Key), cmp.Compare(a.Kind, b.Kind))
	})
	return r
}

// refusalOf returns a setting that refuses.
func refusalOf(s *fleet.Setting) Refusal {
	return Refusal{Kind: s.Kind, Rule: s.Rule, Key: key.Shown(s.Key), Match: s.Match, Since: s.At, Until: s.Until, By: s.By, Reason: s.Reason}
}

// setModes sets the modes of those refusals that have no effect. A refusal of a rule that no program uses keeps its mode.
func (p *Prefix) setModes(all []Refusal, rules []ratelimit.UsedRule) {
	mode := p.modesOf(rules)
	for i := range all {
		one := &all[i]
		if m, ofKey, known := mode(one.Rule, one.Key); known {
			one.Mode, one.keyMode = m, ofKey
		} else if one.Mode == ratelimit.ModeEnforce.String() {
			one.Mode = ""
		}
	}
}

// modesOf returns a function that says in which mode all rules of a name, or of a glob, are for a key as errors show it, or for a pattern of keys. The
// mode is "" if one of the rules refuses. ofKey says that other keys have another mode, and known that there are such rules.
func (p *Prefix) modesOf(rules []ratelimit.UsedRule) func(rule, shown string) (mode string, ofKey, known bool) {
	byKey := false // some keys have a mode of their own
	for s := range p.fleet.InForce().All() {
		byKey = byKey || s.Mode != "" && !s.AllKeys
	}
	named, modes := byName(rules), map[string]string{}
	return func(rule, shown string) (string, bool, bool) {
		name := fleet.SettingName(rule)
		if _, isKnown := modes[name]; !isKnown {
			modes[name] = p.harmless("", named(name))
		}
		mode := modes[name]
		if byKey && shown != "" {
			mode = p.harmless(shown, named(name))
		}
		return mode, mode != modes[name], len(named(name)) > 0
	}
}

// harmless returns the mode of rules for a key as errors show it, for a pattern of keys, or for "" all keys. It is "" if one of the rules refuses.
func (p *Prefix) harmless(shown string, rules []ratelimit.UsedRule) (mode string) {
	for _, r := range rules {
		now, err := p.shown.RuleFor(ratelimit.Request{Rule: r.Rule, Key: shown})
		if err != nil || now.Mode == ratelimit.ModeEnforce {
			return ""
		}
		mode = now.Mode.String()
	}
	return mode
}

// Harmless says that what refuses under a rule has no effect.
func (r *Refusal) Harmless() string {
	switch {
	case r.Mode == "":
		return ""
	case r.keyMode:
		return fmt.Sprintf("%s is in mode %s for %s: such calls would be refused, and pass", r.Rule, r.Mode, r.Key)
	}
	return fmt.Sprintf("%s is in mode %s: its calls would be refused, and pass", r.Rule, r.Mode)
}

// pauses are those that the fleet knows of rules with pause=, under the names that settings use.
type pauses struct {
	all  []Refusal
	more int
}

// count returns how many keys are paused under a rule.
func (p pauses) count(rule string) (n int) {
	for _, one := range p.all {
		if one.Rule == fleet.SettingName(rule) {
			n++
		}
	}
	return n
}

func (p *Prefix) readPauses(ctx context.Context, _ pauses) (found pauses, err error) {
	noted, more, err := p.fleet.Pauses(ctx)
	for _, n := range noted {
		found.all = append(found.all, Refusal{
			Kind: fleet.Pause, Rule: fleet.SettingName(n.Rule), Key: key.Shown(n.Subject),
			Since: n.Since, Until: n.Until, By: n.By, FarSide: n.FarSide,
		})
	}
	found.more = more
	return found, err
}

// blocks are those that rules with block= began.
type blocks struct {
	all  []Refusal
	more string
}

// maxBlocks bounds how many keys of one store are listed that rules with block= refuse.
const maxBlocks = 1000

func (p *Prefix) readBlocks(ctx context.Context, _ blocks) (found blocks, err error) {
	rules, _ := p.rules.await(ctx)
	names := p.namesOf(rules)
	begun, whole, err := p.store().Blocks(ctx, p.name, maxBlocks)
	switch _, denied := errors.AsType[*backend.DeniedError](err); {
	case denied:
		return blocks{more: "keys that the block= of a rule refuses are not listed: this user may not run SCAN"}, nil
	case err != nil:
		return found, err
	case !whole:
		found.more = fmt.Sprintf("there may be more keys that the block= of a rule refuses: at most %s are listed, and a part of a large server is searched", Number(maxBlocks))
	}
	for _, b := range begun {
		name := cmp.Or(traffic.RuleOf(traffic.Named{Rule: b.Rule, Window: b.Tag}, names), b.Rule)
		found.all = append(found.all, Refusal{Kind: fleet.Block, Rule: name, Key: key.Shown(b.Subject), Since: b.Since, Until: b.Until, ByRule: true})
	}
	return found, nil
}

// refusalsOf returns what refuses a key under a rule, besides its count. shown is the key as errors show it.
func (p *Prefix) refusalsOf(ctx context.Context, rule, shown string, set decide.ForKey, looked []engine.Looked) (all []Refusal) {
	for _, s := range []*fleet.Setting{set.Block, set.Pause} {
		if s != nil {
			all = append(all, refusalOf(s))
		}
	}
	var block, pause engine.Looked // those that end last: a rule may have two counts
	for _, l := range looked {
		if l.BlockedUntil.After(block.BlockedUntil) {
			block = l
		}
		if l.PausedUntil.After(pause.PausedUntil) {
			pause = l
		}
	}
	if !block.BlockedUntil.IsZero() {
		all = append(all, Refusal{Kind: fleet.Block, Rule: rule, Key: shown, Since: block.BlockedSince, Until: block.BlockedUntil, ByRule: true, Nth: block.Blocks})
	}
	if !pause.PausedUntil.IsZero() && (set.Pause == nil || pause.PausedUntil.Sub(set.Pause.Until) > time.Second) {
		all = append(all, p.pauseOf(ctx, rule, shown, pause.PausedUntil))
	}
	return all
}

// pauseOf returns the pause of a rule with pause=. The fleet may know who began it.
func (p *Prefix) pauseOf(ctx context.Context, rule, shown string, until time.Time) Refusal {
	noted, _ := p.pauses.Get(ctx)
	for _, one := range noted.all {
		if one.Rule == fleet.SettingName(rule) && one.Key == shown && one.Until.Sub(until).Abs() <= time.Second {
			one.Until = until
			return one
		}
	}
	return Refusal{Kind: fleet.Pause, Rule: rule, Key: shown, Until: until, By: "the far side or a program"}
}
