package operate_test

import (
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// What is said of a block is so for its key: an override may give the key a mode of its own, or the keys of a network, or those of a glob.
func TestModeOfWhatRefuses(t *testing.T) {
	shadowed := ratelimit.Rule{Name: "shadowed", Key: "{ip}", Limit: 5, Per: time.Hour, Mode: ratelimit.ModeShadow}
	_, p := inMemory(t, login, shadowed)
	shadow, enforce := operate.Wish{Mode: new(ratelimit.ModeShadow), Forever: true}, operate.Wish{Mode: new(ratelimit.ModeEnforce), Forever: true}
	for _, set := range []struct {
		rule, key, match string
		operate.Wish
	}{
		{"login", "ann", "", shadow}, {"*", "bob", "", shadow}, {"login", "", "203.0.113.0/24", shadow}, {"login", "", "an*", shadow},
		{"shadowed", "eve", "", enforce}, {"shadowed", "", "198.51.100.0/24", enforce}, {"login", "zero", "", operate.Wish{Limit: new(int64(0)), Mode: shadow.Mode, Forever: true}},
	} {
		if _, err := p.Override(t.Context(), kim, target(set.rule, set.key, set.match), set.Wish); err != nil {
			t.Fatal(err)
		}
	}
	const shadowedIs = "shadowed is in mode shadow: its calls would be refused, and pass"
	of := func(rule, key string) string {
		return rule + " is in mode shadow for " + key + ": such calls would be refused, and pass"
	}
	for _, block := range []struct{ rule, key, match, want string }{
		{"login", "ann", "", of("login", "ann")}, {"login", "bob", "", of("login", "bob")}, {"login", "kim", "", ""},
		{"login", "203.0.113.7", "", of("login", "203.0.113.7")}, {"login", "203.0.114.7", "", ""}, {"login", "", "203.0.113.0/25", of("login", "203.0.113.0/25")},
		{"login", "", "203.0.0.0/16", ""}, {"login", "", "ann*", of("login", "ann*")}, {"login", "", "a*", ""},
		{"shadowed", "ann", "", shadowedIs}, {"shadowed", "eve", "", ""}, {"shadowed", "198.51.100.9", "", ""}, {"shadowed", "", "198.51.100.0/24", ""},
		{"*", "bob", "", of("*", "bob")}, {"*", "eve", "", ""}, {"s*", "kim", "", "s* is in mode shadow: its calls would be refused, and pass"},
	} {
		of := target(block.rule, block.key, block.match)
		if _, err := p.Block(t.Context(), kim, of, time.Hour); err != nil {
			t.Fatal(err)
		}
		said := "not listed"
		for _, one := range p.Refusing(t.Context(), block.rule, fleet.Block).All {
			if one.Rule == block.rule && one.Key == block.key+block.match {
				said = one.Harmless()
			}
		}
		if said != block.want {
			t.Errorf("block of %s %s%s: %q, want %q", block.rule, block.key, block.match, said, block.want)
		}
		if _, err := p.Unblock(t.Context(), kim, of); err != nil {
			t.Fatal(err)
		}
	}
	found := p.Refusing(t.Context(), "login", fleet.Override)
	if len(found.All) != 1 || found.All[0].Harmless() != of("login", "zero") {
		t.Errorf("overrides that refuse are %+v", found.All)
	}
}

// target is the target of a key, of a pattern, or of all keys.
func target(rule, key, match string) operate.Target {
	t := operate.Target{Rule: rule, Match: match}
	if key != "" {
		t.Keys = []string{key}
	}
	return t
}
