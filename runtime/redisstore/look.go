package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/backend"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/printable"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/internal/servers"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore/lua"
)

// Look implements backend.Store. The script answers.
func (s *store) Look(ctx context.Context, call *engine.Call) (engine.Looked, error) {
	own := call.Clone() // the caller may reuse its call
	return servers.Await(ctx, s.servers, func() (l engine.Looked, err error) {
		n, err := s.node(ctx, own.Claims[0].Subject)
		if err != nil {
			return l, err
		}
		return lua.Look(own, n.now(), func(question lua.Run) (any, error) {
			r := &run{Run: question}
			n.sendRuns(ctx, time.Now().Add(s.servers.Timeout), []*run{r})
			return r.reply, r.err
		})
	})
}

// Servers implements backend.Store.
func (s *store) Servers(ctx context.Context, look func(ctx context.Context, name string, do fleet.Do) error) error {
	return s.servers.Each(ctx, look)
}

const (
	maxScans = 100  // SCAN commands for one server, so that a search ends on a server with many keys
	scanned  = 1000 // keys, of any prefix, that one SCAN looks at
	read     = 500  // blocks that are read at once
)

// Blocks implements backend.Store. It searches a bounded part of each server's keys.
func (s *store) Blocks(ctx context.Context, prefix string, most int) (all []backend.Block, whole bool, err error) {
	var mu sync.Mutex
	whole = true
	err = s.Servers(ctx, func(ctx context.Context, _ string, do fleet.Do) error {
		keys, complete, err := scan(ctx, do, key.Blocks(key.Pattern(prefix)), most)
		if err != nil {
			return err
		}
		blocks, err := readBlocks(ctx, do, prefix, keys)
		mu.Lock()
		defer mu.Unlock()
		all, whole = append(all, blocks...), whole && complete
		return err
	})
	return all[:min(len(all), most)], whole && err == nil && len(all) <= most, err
}

// scan returns matching keys of a server, at most the given number. whole reports whether there are no others.
func scan(ctx context.Context, do fleet.Do, match string, most int) (keys []string, whole bool, err error) {
	cursor := any("0")
	for range maxScans {
		replies, err := do(ctx, fleet.Command{"SCAN", cursor, "MATCH", match, "COUNT", scanned, "TYPE", "string"})
		if err != nil {
			return nil, false, err
		}
		page, _ := replies[0].([]any)
		if len(page) != 2 {
			return nil, false, lua.ErrReply
		}
		some, _ := page[1].([]any)
		for _, k := range some {
			if text, _ := k.(string); text == printable.Line(text) { // who may write to the server may have made it up
				keys = append(keys, text)
			}
		}
		if cursor = page[0]; cursor == "0" || len(keys) > most {
			break
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys) // SCAN may find a key twice
	return keys[:min(len(keys), most)], cursor == "0" && len(keys) <= most, nil
}

// readBlocks reads the blocks at some keys of a server, and returns those that are in force.
func readBlocks(ctx context.Context, do fleet.Do, prefix string, keys []string) (all []backend.Block, err error) {
	for some := range slices.Chunk(keys, read) {
		commands := []fleet.Command{{"TIME"}}
		for _, k := range some {
			commands = append(commands, fleet.Command{"GET", k})
		}
		replies, err := do(ctx, commands...)
		if err != nil {
			return all, err
		}
		now := timeOf(replies[0])
		for i, k := range some {
			state, _ := replies[i+1].(string)
			parts, ok := key.Split(k)
			rule, own := parts.Rule(prefix)
			if end, length := lua.ReadBlock(state); ok && parts.IsBlock && own && end > now {
				b := backend.Block{Rule: rule, Tag: parts.Tag, Subject: parts.Subject, Until: time.UnixMicro(end)}
				if length > 0 {
					b.Since = time.UnixMicro(end - length)
				}
				all = append(all, b)
			}
		}
	}
	return all, nil
}

// timeOf returns the time in a reply to TIME, in microseconds, or 0.
func timeOf(reply any) int64 {
	parts, _ := reply.([]any)
	if len(parts) != 2 {
		return 0
	}
	seconds, _ := strconv.ParseInt(fmt.Sprint(parts[0]), 10, 64)
	micros, _ := strconv.ParseInt(fmt.Sprint(parts[1]), 10, 64)
	return seconds*1_000_000 + micros
}
