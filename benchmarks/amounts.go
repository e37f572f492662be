package main

import (
	"fmt"
	"math/rand/v2"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// budget is a case of measureAmounts. A call costs between least and most permits.
type budget struct {
	name        string
	rule        ratelimit.Rule
	least, most int64

	call, settlement float64 // script microseconds; of several turns, the shortest ones count
	bytes            int64
}

// budgetCalls is the number of calls of one subject in a turn. They use most of the limits of budgets.
const budgetCalls = 80

func measureAmounts(server *redisServer, e effort) ([]table, error) {
	budgets := []budget{
		{name: "sliding-window of amounts, limit 1,000,000, calls of 10 to 20,000", rule: sliding(1_000_000, time.Minute), least: 10, most: 20_000},
		{name: "token-bucket, the same", rule: bucket(1_000_000, time.Minute), least: 10, most: 20_000},
		{name: "sliding-window as a list, limit 10,000, calls of 1 to 200", rule: sliding(10_000, time.Minute), least: 1, most: 200},
		{name: "sliding-window as a list, limit 10,000, calls of 1", rule: sliding(10_000, time.Minute), least: 1, most: 1},
	}
	limiter := oursAsking(server.client)
	for range e.rounds {
		for i := range budgets {
			if err := budgets[i].turn(server, limiter); err != nil {
				return nil, fmt.Errorf("%s: %w", budgets[i].name, err)
			}
		}
	}
	t := table{
		title:  fmt.Sprintf("Budgets of tokens: %d calls of one subject in a minute, half of them settled", budgetCalls),
		header: []string{"", "script microseconds of a call", "of a settlement", "bytes of the subject"},
	}
	for _, b := range budgets {
		t.add(b.name, number(b.call), number(b.settlement), grouped(b.bytes))
	}
	return []table{t}, server.flush()
}

// turn makes the calls of a new subject, and then settles every other one. Each turn has the same costs.
func (b *budget) turn(server *redisServer, limiter *ratelimit.Limiter) error {
	if err := server.flush(); err != nil {
		return err
	}
	costs := rand.New(rand.NewPCG(1, 2))
	q := ratelimit.Request{Rule: b.rule, Key: newSubject()}
	var made []ratelimit.Decision
	call, err := server.script(budgetCalls, func(int) error {
		q.Cost = b.least + costs.Int64N(b.most-b.least+1)
		d, err := limiter.Allow(ctx, q)
		if err == nil && !d.Allowed {
			err = fmt.Errorf("refused after %d calls", len(made))
		}
		made = append(made, d)
		return err
	})
	if err != nil {
		return err
	}
	settlement, err := server.script(budgetCalls/2, func(i int) error {
		return made[2*i].Settle(ctx, b.least+costs.Int64N(b.most-b.least+1))
	})
	if err != nil {
		return err
	}
	bytes, err := keyMemory(server, q.Key)
	if b.bytes == 0 {
		b.call, b.settlement = call, settlement
	}
	b.call, b.settlement, b.bytes = min(b.call, call), min(b.settlement, settlement), max(b.bytes, bytes)
	return err
}

// script returns the mean script time of n calls.
func (s *redisServer) script(n int, call func(i int) error) (float64, error) {
	before, err := s.spent()
	if err != nil {
		return 0, err
	}
	for i := range n {
		if err := call(i); err != nil {
			return 0, err
		}
	}
	after, err := s.spent()
	return (after.Script - before.Script) / float64(n), err
}
