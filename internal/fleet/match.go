package fleet

import (
	"cmp"
	"math"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

// patterns are the settings by pattern that hold. They never change.
type patterns struct {
	settings *tree[*Setting] // by name
	rules    map[string]bool // the names of rules, which are no globs
	globs    []string        // the longest first
	compiled sync.Map        // of *ByPattern, by scope
}

// scope identifies the rules for which the same settings by pattern hold: those of one name, or those of no name with settings of its own, and that
// one glob is the longest of. Shorter globs then match them, too.
type scope struct{ rule, glob string }

func newPatterns(settings *tree[*Setting]) *patterns {
	if settings == nil {
		return nil
	}
	p := &patterns{settings: settings, rules: map[string]bool{}}
	for s := range settings.all() {
		if IsGlob(s.Rule) {
			p.globs = append(p.globs, s.Rule)
		} else {
			p.rules[s.Rule] = true
		}
	}
	slices.SortFunc(p.globs, func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	p.globs = slices.Compact(p.globs)
	return p
}

// all returns the settings by their names.
func (p *patterns) all() *tree[*Setting] {
	if p == nil {
		return nil
	}
	return p.settings
}

// ByPattern are the settings by pattern that hold for the rules of one name. They never change. A nil ByPattern has none.
type ByPattern struct {
	All      []*Setting          // the overrides for all keys, of the longest glob first
	keys     map[string]*Matched // by subject, under rules by glob
	networks nest[netip.Prefix]
	texts    nest[string]
	byText   []*Setting // of texts
	byKey    []*Setting // of keys, networks and texts
}

// Matched are the settings that hold for the keys of one pattern: its own, and those of the patterns that contain it.
type Matched struct {
	Overrides    []*Setting // the most exact one first
	Until        time.Time  // when the first of them ends; zero means never
	Block, Pause *Setting   // of several, the one that ends last; or nil
}

// ByPattern returns the settings by pattern for the rules of a name, or nil if there are none. It is the same pointer as before if no setting by
// pattern has changed.
func (in *InForce) ByPattern(rule string) *ByPattern {
	if in == nil || in.patterns == nil {
		return nil
	}
	p, of := in.patterns, scope{}
	if p.rules[rule] {
		of.rule = rule
	}
	if i := slices.IndexFunc(p.globs, func(glob string) bool { return Covers(glob, rule) }); i >= 0 {
		of.glob = p.globs[i]
	}
	if of == (scope{}) {
		return nil
	}
	compiled, ok := p.compiled.Load(of)
	if !ok {
		compiled, _ = p.compiled.LoadOrStore(of, p.compile(rule))
	}
	return compiled.(*ByPattern)
}

// compile returns the settings for the rules of a name.
func (p *patterns) compile(rule string) *ByPattern {
	var all []*Setting
	for s := range p.settings.all() {
		if Covers(s.Rule, rule) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b *Setting) int { // the name first, then the longest glob
		return cmp.Or(globLen(a)-globLen(b), Compare(a, b))
	})
	c := &ByPattern{keys: map[string]*Matched{}}
	networks, texts := map[netip.Prefix]*Matched{}, map[string]*Matched{}
	for _, s := range all {
		begin, isText := strings.CutSuffix(s.Key, "*")
		if s.AllKeys {
			c.All = append(c.All, s)
			continue
		}
		c.byKey = append(c.byKey, s)
		switch {
		case !s.Match:
			put(c.keys, s.Key, s)
		case isText:
			put(texts, begin, s)
			c.byText = append(c.byText, s)
		default:
			put(networks, netip.MustParsePrefix(s.Key), s)
		}
	}
	c.networks = nested(networks, beginOf, netip.Prefix.Bits, hasNetwork)
	c.texts = nested(texts, func(begin string) string { return begin }, func(begin string) int { return len(begin) }, hasText)
	return c
}

// globLen orders rules: a name, and then globs, the longest first.
func globLen(s *Setting) int {
	if IsGlob(s.Rule) {
		return math.MaxInt16 - len(s.Rule)
	}
	return 0
}

// put adds a setting to those of its pattern.
func put[P comparable](all map[P]*Matched, pattern P, s *Setting) {
	m := all[pattern]
	if m == nil {
		m = new(Matched)
		all[pattern] = m
	}
	switch s.Kind {
	case Block:
		m.Block = Later(m.Block, s)
	case Pause:
		m.Pause = Later(m.Pause, s)
	default:
		m.override(s)
	}
}

// override adds an override that is less exact than those before it.
func (m *Matched) override(s *Setting) {
	m.Overrides = append(m.Overrides, s)
	if !s.Until.IsZero() && (m.Until.IsZero() || s.Until.Before(m.Until)) {
		m.Until = s.Until
	}
}

// Later returns the setting that ends later. Either may be nil.
func Later(a, b *Setting) *Setting {
	if a == nil || b != nil && b.Until.After(a.Until) {
		return b
	}
	return a
}

// nest has patterns of one kind, each after those that contain it.
type nest[P any] struct {
	begins []string // where they begin; see beginOf. It grows
	places []*place[P]
}

// place is a pattern in a nest.
type place[P any] struct {
	pattern P
	Matched
	outer *place[P] // the longest pattern that contains it, or nil
}

// nested returns the nest of some patterns. has reports whether one contains another.
func nested[P comparable](all map[P]*Matched, begin func(P) string, length func(P) int, has func(outer, inner P) bool) nest[P] {
	var n nest[P]
	for pattern, m := range all {
		n.places = append(n.places, &place[P]{pattern: pattern, Matched: *m})
	}
	slices.SortFunc(n.places, func(a, b *place[P]) int {
		return cmp.Or(cmp.Compare(begin(a.pattern), begin(b.pattern)), length(a.pattern)-length(b.pattern))
	})
	for i, p := range n.places {
		n.begins = append(n.begins, begin(p.pattern))
		if i > 0 {
			p.outer = n.places[i-1]
		}
		for p.outer != nil && !has(p.outer.pattern, p.pattern) {
			p.outer = p.outer.outer
		}
		if p.outer == nil {
			continue
		}
		for _, s := range p.outer.Overrides {
			p.override(s)
		}
		p.Block, p.Pause = Later(p.Block, p.outer.Block), Later(p.Pause, p.outer.Pause)
	}
	return n
}

// find returns what holds for the longest pattern that contains a key, or nil. The patterns that contain the key contain the last one that begins before
// it or with it, too, or are that one.
func (n *nest[P]) find(begin string, has func(P) bool) *Matched {
	from, to := 0, len(n.begins)
	for from < to {
		if middle := (from + to) / 2; n.begins[middle] <= begin {
			from = middle + 1
		} else {
			to = middle
		}
	}
	if from == 0 {
		return nil
	}
	for p := n.places[from-1]; p != nil; p = p.outer {
		if has(p.pattern) {
			return &p.Matched
		}
	}
	return nil
}

// beginOf returns the first address of a network as text that sorts as addresses do, those of IPv4 first.
func beginOf(n netip.Prefix) string {
	var b [17]byte
	b[0] = byte(n.Addr().BitLen())
	address := n.Addr().As16()
	copy(b[1:], address[:])
	return string(b[:])
}

// hasNetwork reports whether a network contains another one, or an address as the network of that address alone.
func hasNetwork(n, in netip.Prefix) bool { return n.Bits() <= in.Bits() && n.Contains(in.Addr()) }

func hasText(begin, text string) bool { return strings.HasPrefix(text, begin) }

// Len returns how many patterns there are of keys. A nil ByPattern has none.
func (p *ByPattern) Len() int {
	if p == nil {
		return 0
	}
	return len(p.keys) + len(p.networks.places) + len(p.texts.places)
}

// Keys returns the settings for keys, networks and texts.
func (p *ByPattern) Keys() []*Setting {
	if p == nil {
		return nil
	}
	return p.byKey
}

// Texts returns the settings for keys by text. They match no key that is hashed.
func (p *ByPattern) Texts() []*Setting {
	if p == nil {
		return nil
	}
	return p.byText
}

// HasNetworks reports whether a pattern is a network. Who knows a key by its hash alone cannot say whether the key is in it.
func (p *ByPattern) HasNetworks() bool { return p != nil && len(p.networks.places) > 0 }

// Match returns what holds for a key by its text, by its network, and under rules by glob by the key itself, in this order. The later ones are more
// exact. Each may be nil. text is the key as its caller writes it. isHash says that the subject is a hash of it.
func (p *ByPattern) Match(text, subject string, isHash bool) (found [3]*Matched) {
	if p == nil {
		return found
	}
	if len(p.byText) > 0 && !isHash {
		found[0] = p.texts.find(subject, func(begin string) bool { return hasText(begin, subject) })
	}
	if p.HasNetworks() {
		if in, ok := networkOf(text); ok {
			found[1] = p.networks.find(beginOf(in), func(n netip.Prefix) bool { return hasNetwork(n, in) })
		}
	}
	found[2] = p.keys[subject]
	return found
}

// ForKey are the settings that hold for a key of a rule.
type ForKey struct {
	Overrides    []*Setting // the most exact one first
	Block, Pause *Setting   // of several, the one that ends last; or nil
}

// ForKey returns the settings that hold for a key of the rules of a name: see ByPattern.Match. Calls do not use it, as it is slow: they have plans.
func (in *InForce) ForKey(rule, text, subject string, isHash bool) (all ForKey) {
	of, by := in.Of(rule), in.ByPattern(rule)
	k := of.OfKey(subject)
	all.Block, all.Pause = k.Block, k.Pause
	if k.Override != nil {
		all.Overrides = append(all.Overrides, k.Override)
	}
	found := by.Match(text, subject, isHash)
	for _, m := range slices.Backward(found[:]) {
		if m != nil {
			all.Overrides = append(all.Overrides, m.Overrides...)
			all.Block, all.Pause = Later(all.Block, m.Block), Later(all.Pause, m.Pause)
		}
	}
	if of.All != nil {
		all.Overrides = append(all.Overrides, of.All)
	}
	if by != nil {
		all.Overrides = append(all.Overrides, by.All...)
	}
	return all
}

// maxAddress is longer than the text of any address or network.
const maxAddress = 64

// networkOf returns the network that a key is, or that of the address alone that it is. An address that maps an IPv4 address counts as that. A zone does
// not matter.
func networkOf(text string) (n netip.Prefix, ok bool) {
	if !isLikeAddress(text) { // errors of the parsers take memory
		return n, false
	}
	if strings.IndexByte(text, '/') < 0 {
		a, err := netip.ParseAddr(text)
		a = a.Unmap().WithZone("")
		return netip.PrefixFrom(a, a.BitLen()), err == nil
	}
	n, err := netip.ParsePrefix(text)
	if alike := unmapped(n); alike.IsValid() {
		n = alike
	}
	return n, err == nil
}

// isLikeAddress reports whether a text has the letters of an address, and a dot or a colon.
func isLikeAddress(text string) (found bool) {
	for i := 0; i < len(text) && i <= maxAddress; i++ {
		switch c := text[i]; {
		case c == '.' || c == ':':
			found = true
		case c == '%' || c == '/':
			return found && len(text) <= maxAddress
		case !('0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'):
			return false
		}
	}
	return found && len(text) <= maxAddress
}
