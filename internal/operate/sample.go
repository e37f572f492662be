package operate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
)

// tripEvery is the time between two round trips.
const tripEvery = 20 * time.Millisecond

// Observe measures the servers' round trips and growth for some time, for the next Judge.
func (p *Prefix) Observe(ctx context.Context, d time.Duration) {
	p.servers.Get(ctx)
	for began := time.Now(); time.Since(began) < d && ctx.Err() == nil; time.Sleep(tripEvery) {
		h, err := p.fleet.Health(ctx)
		if err != nil {
			break
		}
		p.trips.add(h.RoundTrip)
	}
	p.servers.forget()
}

// sampled is what the counts of one rule take in a sample.
type sampled struct {
	rule, algorithm string
	keys, bytes     int64
}

// shownRules is of how many rules the counts are shown.
const shownRules = 5

// Sample says how many keys and bytes the rules take on each server, those that take the most first, and whether all keys expire.
func (p *Prefix) Sample(ctx context.Context) (facts []Fact, err error) {
	var mu sync.Mutex
	err = p.store().Servers(ctx, func(ctx context.Context, name string, do fleet.Do) error {
		found, err := p.sample(ctx, name, do)
		mu.Lock()
		defer mu.Unlock()
		facts = append(facts, found...)
		return err
	})
	return facts, err
}

func (p *Prefix) sample(ctx context.Context, server string, do fleet.Do) ([]Fact, error) {
	keys, whole, err := scan(ctx, do, key.Pattern(p.name)+":*")
	if err != nil && isDenied(err) {
		return []Fact{{server, "keys", "this user may not ask: permit +scan +memory|usage +pttl"}}, nil
	}
	if err != nil || len(keys) == 0 {
		return []Fact{{server, "keys", "no counts of prefix " + p.name}}, err
	}
	by, lasting := map[string]*sampled{}, []string(nil)
	for some := range slices.Chunk(keys, 100) {
		var ask []fleet.Command
		for _, k := range some {
			ask = append(ask, fleet.Command{"MEMORY", "USAGE", k}, fleet.Command{"PTTL", k})
		}
		replies, err := do(ctx, ask...)
		if err != nil && isDenied(err) {
			return []Fact{{server, "keys", "this user may not ask: permit +memory|usage +pttl"}}, nil
		}
		if err != nil {
			return nil, err
		}
		for i, k := range some {
			if integer(replies[2*i+1]) == -1 {
				lasting = append(lasting, k)
			}
			p.addSampled(by, k, integer(replies[2*i]))
		}
	}
	text := cmp.Or(sampledInWords(by), "no counts of prefix "+p.name)
	if !whole {
		text += fmt.Sprintf(": these are %s sampled keys; the server has more", Number(int64(len(keys))))
	}
	expiry := Fact{server, "expiry", fmt.Sprintf("all of %s expire", Count(len(keys), "key"))}
	if len(lasting) > 0 {
		expiry.Text = fmt.Sprintf("%d of %s do not expire, such as %s: no limiter of this version leaves such keys, so others use the prefix; give the limiters a prefix of their own",
			len(lasting), Count(len(keys), "key"), lasting[0])
	}
	return []Fact{{server, "keys", text}, expiry}, nil
}

func (p *Prefix) addSampled(by map[string]*sampled, k string, bytes int64) {
	parts, ok := key.Split(k)
	rule, own := parts.Rule(p.name)
	if !ok || parts.IsBlock || !own {
		return
	}
	s := by[parts.Owner+" "+parts.Tag]
	if s == nil {
		s = &sampled{rule: rule, algorithm: parts.Tag}
		by[parts.Owner+" "+parts.Tag] = s
	}
	s.keys, s.bytes = s.keys+1, s.bytes+bytes
}

// sampledInWords describes the rules that take the most.
func sampledInWords(by map[string]*sampled) string {
	var all []*sampled
	for _, s := range by {
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *sampled) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), strings.Compare(a.rule+a.algorithm, b.rule+b.algorithm))
	})
	var texts []string
	for _, s := range all[:min(len(all), shownRules)] {
		texts = append(texts, fmt.Sprintf("%s %s of %d bytes (%s)", s.rule, Count(s.keys, "key"), s.bytes/s.keys, s.algorithm))
	}
	if more := len(all) - shownRules; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more rules", more))
	}
	return strings.Join(texts, ", ")
}
