package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/period"
)

// checkPrefix returns an error that names the prefixes on the server if programs use none by this name. If the store lost its settings, it says so.
func (t *tool) checkPrefix(ctx context.Context) error {
	exists, err := t.fleet.Exists(ctx)
	switch {
	case err != nil:
		if _, replied := errors.AsType[redis.Error](err); replied {
			if wrong, _ := t.sentinel(ctx); wrong != nil {
				return wrong
			}
		}
		return err
	case exists || t.force:
		return t.warnOfLoss(ctx)
	}
	all, err := t.prefixes(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("no program uses prefix %q; the others on this server are unknown: %w", t.prefix, err)
	case len(all) == 0:
		return errors.New("no prefix on this server")
	}
	return fmt.Errorf("no program uses prefix %q; on this server there is %s: see -prefix", t.prefix, strings.Join(all, ", "))
}

// prefixes returns the prefixes on the server, as far as a bounded search finds them.
func (t *tool) prefixes(ctx context.Context) ([]string, error) {
	found, err := eachServer(ctx, t, func(ctx context.Context, s *server) (found []string, err error) {
		for _, pattern := range fleet.Patterns {
			keys, _, err := s.scan(ctx, pattern, maxSample)
			if err != nil {
				return nil, err
			}
			for _, k := range keys {
				if prefix, ok := fleet.PrefixOf(k); ok {
					found = append(found, shown(prefix))
				}
			}
		}
		return found, nil
	})
	all := slices.Concat(found...)
	slices.Sort(all)
	return slices.Compact(all), err
}

// eachServer returns what look finds on the server, or on each master of a cluster, perhaps at the same time.
func eachServer[T any](ctx context.Context, t *tool, look func(context.Context, *server) (T, error)) (found []T, err error) {
	cluster, ok := t.client.(*redis.ClusterClient)
	if !ok {
		one, err := look(ctx, &server{UniversalClient: t.client, tool: t})
		return []T{one}, err
	}
	var mu sync.Mutex
	err = cluster.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
		one, err := look(ctx, &server{UniversalClient: master, tool: t, name: master.Options().Addr})
		mu.Lock()
		defer mu.Unlock()
		found = append(found, one)
		return err
	})
	return found, err
}

// warnOfLoss says on the standard error if the store lost settings that processes still apply.
func (t *tool) warnOfLoss(ctx context.Context) error {
	n, err := t.noteLoss(ctx)
	if n > 0 {
		apply := "processes still apply theirs"
		if n == 1 {
			apply = "process still applies its own"
		}
		fmt.Fprintf(t.stderr, "the store lost its settings; %d %s: run settings import with a file of settings export, or with an empty one\n", n, apply)
	}
	return err
}

// noteLoss returns how many processes apply settings that the store lost, and keeps that for answers.
func (t *tool) noteLoss(ctx context.Context) (n int, err error) {
	processes, err := t.fleet.Processes(ctx)
	most := 0
	for _, p := range processes {
		if p.Lost > 0 {
			n, most = n+1, max(most, p.Lost)
		}
	}
	if n > 0 {
		t.kept = fmt.Sprintf("%s still applied settings that the store lost, up to %d: see ratelimitctl processes", period.Count(int64(n), "process"), most)
	}
	return n, err
}

// withKept adds to an answer about settings that processes keep others.
func (t *tool) withKept(lines [][]string) [][]string {
	if t.kept != "" {
		lines = append(lines, []string{t.kept})
	}
	return lines
}

// nothing says that the store has no setting. If the store lost none, none is in force.
func (t *tool) nothing(inForce string) string {
	if t.kept != "" {
		return "none in the store"
	}
	return inForce
}
