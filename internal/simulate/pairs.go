package simulate

import (
	"cmp"
	"slices"
)

// pair is a rule of a method on both sides of a comparison.
type pair struct {
	was, now *Rule // nil if the rule is not there
}

// either returns the rule of now, or the one before if the rule is gone.
func (p pair) either() *Rule { return cmp.Or(p.now, p.was) }

// needs returns what both rules need of each call.
func (p pair) needs(in columns) []need { return append(in.needs(p.now), in.needs(p.was)...) }

// pairUp pairs each rule of now with a rule that its method had before. It prefers an equal rule, then one of the same name, key and window, then one
// of the same name, and then one with the same arguments. Rules that are gone come last.
func pairUp(before, now []Rule) []pair {
	pairs := make([]pair, len(now))
	for i := range now {
		pairs[i].now = &now[i]
	}
	unpaired := make([]*Rule, len(before))
	for i := range before {
		unpaired[i] = &before[i]
	}
	for _, alike := range []func(a, b *Rule) bool{
		func(a, b *Rule) bool { return a.Name == b.Name && a.Text == b.Text },
		func(a, b *Rule) bool { return a.Name == b.Name && a.Key == b.Key && a.Window() == b.Window() },
		func(a, b *Rule) bool { return a.Name == b.Name },
		func(a, b *Rule) bool { return a.Text == b.Text },
	} {
		for i, p := range pairs {
			j := slices.IndexFunc(unpaired, func(was *Rule) bool { return p.was == nil && was.Method == p.now.Method && alike(was, p.now) })
			if j >= 0 {
				pairs[i].was = unpaired[j]
				unpaired = slices.Delete(unpaired, j, j+1)
			}
		}
	}
	for _, was := range unpaired {
		pairs = append(pairs, pair{was: was})
	}
	return pairs
}
