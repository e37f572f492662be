package main

import (
	"context"
	"fmt"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// reset forgets what keys have used under the rules of a name. It notes one change for all of them.
func (t *tool) reset(ctx context.Context, args []string) error {
	actor, err := t.actor()
	if err != nil {
		return err
	}
	all, err := t.requestsOf(ctx, args)
	if err != nil {
		return err
	}
	if err := t.fleet.Follow(ctx); err != nil { // an override may change the window
		return err
	}
	n := 0
	for _, q := range all {
		forgotten, err := t.limiter.Reset(ctx, q)
		if err != nil {
			return err
		}
		n += forgotten
	}
	change := fleet.Change{By: actor.By, Reason: actor.Reason, What: "reset", Rule: args[0], Keys: len(all)}
	if len(all) == 1 {
		change.Keys = 0
		if change.Key, err = t.subject(all[0]); err != nil {
			return err
		}
	}
	if err := t.fleet.Note(ctx, change); err != nil {
		return fmt.Errorf("%s forgotten, but not noted in changes: %w", counted(int64(n), "count"), err)
	}
	return t.print(map[string]int{"forgotten": n}, []string{counted(int64(n), "count") + " forgotten"})
}

// requestsOf returns requests for RULE and KEY, or for -keys.
func (t *tool) requestsOf(ctx context.Context, args []string) ([]ratelimit.Request, error) {
	rules, err := t.find(ctx, args[0])
	if err != nil {
		return nil, err
	}
	keys, err := t.keysOf(argument(args, 1))
	if err != nil {
		return nil, err
	}
	return requests(rules, keys)
}

// argument returns an argument, or "" if it is missing.
func argument(args []string, i int) string {
	if i < len(args) {
		return args[i]
	}
	return ""
}
