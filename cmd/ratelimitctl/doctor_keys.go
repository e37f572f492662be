package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

const (
	maxScans  = 100  // SCAN commands for one server
	scanned   = 1000 // keys, of any prefix, that one SCAN looks at
	maxSample = 1000 // keys of the prefix in a sample
)

// sample returns some keys of the prefix.
func (p *patient) sample(ctx context.Context) (keys []string, err error) {
	keys, _, err = p.scan(ctx, pattern(key.Escape(p.tool.prefix))+":*", maxSample)
	return keys, err
}

// scan returns matching keys, at most the given number. all reports whether there are no others. scan looks only at a part of a large server's
// keys, and may return a key twice.
func (p *patient) scan(ctx context.Context, match string, most int) (keys []string, all bool, err error) {
	cursor := uint64(0)
	for range maxScans {
		var some []string
		some, cursor, err = p.Scan(ctx, cursor, match, scanned).Result()
		if keys = append(keys, some...); err != nil || cursor == 0 || len(keys) >= most {
			break
		}
	}
	all = err == nil && cursor == 0 && len(keys) <= most
	return keys[:min(len(keys), most)], all, err
}

// each sends the command of ask for each key, and calls take with the answers that are not errors.
func (p *patient) each(ctx context.Context, keys []string, ask func(redis.Pipeliner, string), take func(key string, answer redis.Cmder)) {
	if len(keys) == 0 {
		return
	}
	answers, _ := p.Pipelined(ctx, func(pipe redis.Pipeliner) error {
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

// sizes says how many bytes counts take on average, by algorithm.
func (p *patient) sizes(ctx context.Context) string {
	keys, err := p.sample(ctx)
	if err != nil {
		return ""
	}
	var order []string
	bytes, counts := map[string]int64{}, map[string]int64{}
	p.each(ctx, keys, func(pipe redis.Pipeliner, k string) { pipe.MemoryUsage(ctx, k) }, func(k string, answer redis.Cmder) {
		word := lua.AlgorithmOf(k)
		if word == "" {
			return
		}
		if counts[word]++; counts[word] == 1 {
			order = append(order, word)
		}
		bytes[word] += answer.(*redis.IntCmd).Val()
	})
	slices.Sort(order)
	for i, word := range order {
		order[i] = fmt.Sprintf("%d bytes of a %s", bytes[word]/counts[word], word)
	}
	return strings.Join(order, ", ")
}

// checkExpiries looks for keys without an expiry. Those of overrides and blocks, which may have none, are not in the sample.
func checkExpiries(ctx context.Context, p *patient) finding {
	keys, err := p.sample(ctx)
	if err != nil {
		return unknown("expiry", "+scan +pttl")
	}
	asked := 0
	var lasting []string
	p.each(ctx, keys, func(pipe redis.Pipeliner, k string) { pipe.PTTL(ctx, k) }, func(k string, answer redis.Cmder) {
		if asked++; answer.(*redis.DurationCmd).Val() == -1 {
			lasting = append(lasting, k)
		}
	})
	f := finding{Status: fine, Check: "expiry", Found: fmt.Sprintf("all of %d keys expire", asked)}
	switch {
	case len(keys) > asked:
		return unknown("expiry", "+scan +pttl")
	case asked == 0:
		f.Found = fmt.Sprintf("no keys of prefix %s", p.tool.prefix)
	case len(lasting) > 0:
		f.Status, f.Found = warn, fmt.Sprintf("%d of %d keys do not expire, such as %s", len(lasting), asked, lasting[0])
		f.Meaning, f.Advice = "no limiter of this version leaves such keys, so others use the prefix", "Give the limiters a prefix of their own, or remove the keys"
	}
	return f
}
