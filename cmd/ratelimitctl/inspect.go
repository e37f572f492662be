package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"
)

// inspected says, as JSON, what a key has used under a rule.
type inspected struct {
	Rule       string  `json:"rule"`
	Window     string  `json:"window"`
	Key        string  `json:"key,omitempty"`
	Used       int64   `json:"used"`
	Limit      int64   `json:"limit"` // of a bucket, its burst
	Remaining  int64   `json:"remaining"`
	ResetIn    string  `json:"resetIn,omitempty"`
	RetryAfter string  `json:"retryAfter,omitempty"`
	Waiting    []place `json:"waiting,omitempty"`
	Ahead      []place `json:"ahead,omitempty"` // permits that leases took
	Free       []place `json:"free,omitempty"`

	words string // the rule's limit in words
}

func (t *tool) inspect(ctx context.Context, args []string, _ options) error {
	requests, err := t.requests(ctx, args)
	if err != nil {
		return err
	}
	if err := t.limiter.Ping(ctx); err != nil { // reads overrides and blocks
		return err
	}
	shown := []inspected{}
	for _, q := range requests {
		q.Member = rand.Text() // a member that is not counted yet, for a rule with distinct=
		d, err := t.limiter.Peek(ctx, q)
		if err != nil {
			return err
		}
		rule, err := t.limiter.RuleFor(q)
		if err != nil {
			return err
		}
		waiting, free, err := t.places(ctx, q, rule)
		if err != nil {
			return err
		}
		var ahead []place
		if rule.Lease > 0 {
			ahead, waiting = waiting, nil // under a rule with lease=, future permits are those of leases
		}
		for _, quota := range d.Quotas {
			shown = append(shown, inspected{
				Rule: quota.Rule, Window: quota.Window, Key: quota.Key, Used: quota.Limit - quota.Remaining, Limit: quota.Limit,
				Remaining: quota.Remaining, ResetIn: words(quota.Reset), RetryAfter: words(d.RetryAfter), Waiting: waiting, Ahead: ahead, Free: free,
				words: fmt.Sprint(rule.Limit, " ", perWindow(rule.Window())),
			})
		}
	}
	return t.print(shown, inspectedLines(shown)...)
}

func inspectedLines(shown []inspected) [][]string {
	lines := [][]string{{"RULE", "LIMIT", "USED", "REMAINING", "RESET IN", "RETRY AFTER"}}
	for _, s := range shown {
		lines = append(lines, []string{
			s.Rule, s.words, fmt.Sprintf("%d of %d", s.Used, s.Limit), strconv.FormatInt(s.Remaining, 10), s.ResetIn, s.RetryAfter,
		})
	}
	for _, s := range shown {
		if len(s.Waiting) > 0 {
			lines = append(lines, []string{fmt.Sprintf("%s: calls wait for %s", s.words, inWords(s.Waiting))})
		}
		if len(s.Ahead) > 0 {
			lines = append(lines, []string{fmt.Sprintf("%s: processes took ahead %s", s.words, inWords(s.Ahead))})
		}
		if len(s.Free) > 0 {
			lines = append(lines, []string{fmt.Sprintf("%s: calls that gave up left %s, which the next calls that wait may use", s.words, inWords(s.Free))})
		}
	}
	return lines
}

// inWords says how many permits the places have, and when they are due.
func inWords(places []place) string {
	permits := int64(0)
	for _, p := range places {
		permits += p.Permits
	}
	first, last := places[0].In, places[len(places)-1].In
	if first == last {
		return counted(permits, "permit") + " in " + first
	}
	return fmt.Sprintf("%s, the first in %s and the last in %s", counted(permits, "permit"), first, last)
}

func counted(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func words(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.Round(time.Millisecond).String()
}
