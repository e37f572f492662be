package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

const (
	maxScans  = 100  // SCAN commands for one server
	scanned   = 1000 // keys, of any prefix, that one SCAN looks at
	maxSample = 1000 // keys of the prefix in a sample
)

// sample returns some keys of the prefix, and whether there are no others.
func (s *server) sample(ctx context.Context) (keys []string, all bool, err error) {
	keys, all, err = s.scan(ctx, pattern(key.Escape(s.tool.prefix))+":*", maxSample)
	slices.Sort(keys)
	return slices.Compact(keys), all, err
}

// scan returns matching keys, at most the given number. all reports whether there are no others. scan looks only at a part of a large server's
// keys, and may return a key twice.
func (s *server) scan(ctx context.Context, match string, most int) (keys []string, all bool, err error) {
	cursor := uint64(0)
	for range maxScans {
		var some []string
		some, cursor, err = s.Scan(ctx, cursor, match, scanned).Result()
		if keys = append(keys, some...); err != nil || cursor == 0 || len(keys) >= most {
			break
		}
	}
	all = err == nil && cursor == 0 && len(keys) <= most
	return keys[:min(len(keys), most)], all, err
}

// each sends the command of ask for each key, and calls take with the answers that are not errors.
func (s *server) each(ctx context.Context, keys []string, ask func(redis.Pipeliner, string), take func(key string, answer redis.Cmder)) {
	if len(keys) == 0 {
		return
	}
	answers, _ := s.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		for _, k := range keys {
			ask(pipe, k)
		}
		return nil
	})
	for i, answer := range answers {
		if answer.Err() == nil {
			take(keys[i], answer)
		}
	}
}

// use is what the counts of one rule take in a sample.
type use struct {
	rule, algorithm string
	keys, bytes     int64
}

// shownUses is of how many rules the counts are shown.
const shownUses = 5

// checkKeys says how many keys and bytes the rules take, those that take the most first.
func checkKeys(ctx context.Context, s *server) finding {
	if s.scanErr != nil {
		return unknown("keys", "+scan +memory|usage")
	}
	uses, asked := map[string]*use{}, 0
	prefix := key.Escape(s.tool.prefix) + ":"
	s.each(ctx, s.keys, func(pipe redis.Pipeliner, k string) { pipe.MemoryUsage(ctx, k) }, func(k string, answer redis.Cmder) {
		asked++
		algorithm := lua.AlgorithmOf(k)
		if algorithm == "" {
			return
		}
		parts, _ := key.Split(k)
		u := uses[parts.Owner+" "+algorithm]
		if u == nil {
			u = &use{rule: strings.TrimPrefix(parts.Owner, prefix), algorithm: algorithm}
			uses[parts.Owner+" "+algorithm] = u
		}
		u.keys, u.bytes = u.keys+1, u.bytes+answer.(*redis.IntCmd).Val()
	})
	switch {
	case len(s.keys) > 0 && asked == 0:
		return unknown("keys", "+scan +memory|usage")
	case len(uses) == 0:
		return finding{Status: fine, Check: "keys", Found: "no counts of prefix " + s.tool.prefix}
	}
	f := finding{Status: fine, Check: "keys", Found: strings.Join(usesInWords(uses), ", ")}
	if !s.whole {
		f.Meaning = fmt.Sprintf("these are %d sampled keys; the server has more", len(s.keys))
	}
	return f
}

// usesInWords describes the rules that take the most.
func usesInWords(uses map[string]*use) (texts []string) {
	var all []*use
	for _, u := range uses {
		all = append(all, u)
	}
	slices.SortFunc(all, func(a, b *use) int {
		return cmp.Or(cmp.Compare(b.bytes, a.bytes), strings.Compare(a.rule+a.algorithm, b.rule+b.algorithm))
	})
	for _, u := range all[:min(len(all), shownUses)] {
		texts = append(texts, fmt.Sprintf("%s %s of %d bytes (%s)", u.rule, period.Count(u.keys, "key"), u.bytes/u.keys, u.algorithm))
	}
	if more := len(all) - shownUses; more > 0 {
		texts = append(texts, fmt.Sprintf("%d more rules", more))
	}
	return texts
}

// checkExpiries looks for keys without an expiry. Those of overrides, blocks and pauses, which may have none, are not in the sample.
func checkExpiries(ctx context.Context, s *server) finding {
	if s.scanErr != nil {
		return unknown("expiry", "+scan +pttl")
	}
	asked := 0
	var lasting []string
	s.each(ctx, s.keys, func(pipe redis.Pipeliner, k string) { pipe.PTTL(ctx, k) }, func(k string, answer redis.Cmder) {
		if asked++; answer.(*redis.DurationCmd).Val() == -1 {
			lasting = append(lasting, k)
		}
	})
	f := finding{Status: fine, Check: "expiry", Found: fmt.Sprintf("all of %d keys expire", asked)}
	switch {
	case len(s.keys) > asked:
		return unknown("expiry", "+scan +pttl")
	case asked == 0:
		f.Found = fmt.Sprintf("no keys of prefix %s", s.tool.prefix)
	case len(lasting) > 0:
		f.Status, f.Found = warn, fmt.Sprintf("%d of %d keys do not expire, such as %s", len(lasting), asked, lasting[0])
		f.Meaning, f.Advice = "no limiter of this version leaves such keys, so others use the prefix", "Give the limiters a prefix of their own, or remove the keys"
	}
	return f
}
