package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/operate"
)

// observation is how long doctor observes a server.
const observation = 2 * time.Second

// doctor prints what is wrong, and what else is worth knowing of the servers. It fails if a problem is bad.
func doctor(ctx context.Context, s *session) error {
	s.prefix.Observe(ctx, observation)
	judged := s.prefix.Judge(ctx)
	if _, replied := errors.AsType[redis.Error](judged.At.Err); replied {
		if wrong := s.sentinel(ctx); wrong != nil {
			return wrong
		}
	}
	if judged.At.Err == nil && s.rules == "" {
		if wrong := s.isElsewhere(ctx); wrong != nil {
			return wrong
		}
	}
	lines, ill := problemLines(judged.Problems)
	facts := judged.Facts
	if judged.At.Err == nil && !s.json {
		more, err := s.prefix.Sample(ctx)
		if err != nil {
			return err
		}
		facts = append(facts, more...)
	}
	var known [][]string
	for _, f := range facts {
		known = append(known, []string{cmp.Or(f.Server, "server"), f.Check, f.Text})
	}
	if err := s.print(judged.Problems, lines...); err != nil {
		return err
	}
	if !s.json && len(known) > 0 {
		if _, err := fmt.Fprint(s.stdout, "\n"+columns(known, 0)); err != nil {
			return err
		}
	}
	if ill > 0 {
		return fmt.Errorf("%s, of which %d bad", operate.Count(len(judged.Problems), "problem"), ill)
	}
	return nil
}

// problemLines returns a line for each problem, and how many are bad.
func problemLines(problems []operate.Problem) (lines [][]string, ill int) {
	for _, p := range problems {
		if p.Level == operate.Bad {
			ill++
		}
		text := p.Text
		if !p.Since.IsZero() {
			text += ", since " + operate.LocalTime(p.Since)
		}
		if p.Advice != "" {
			text += ". To do: " + p.Advice
		}
		lines = append(lines, []string{p.Level.String(), p.ID, p.Subject, text})
	}
	if len(lines) == 0 {
		lines = [][]string{{"All is well."}}
	}
	return lines, ill
}
