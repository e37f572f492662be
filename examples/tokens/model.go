package main

import (
	"cmp"
	"context"
)

//go:generate go run github.com/ratelimit-go/ratelimit/cmd/ratelimit

// Request is a question of a user, who belongs to a team of an organisation.
type Request struct {
	Org, Team, User string
	Prompt          string
	MaxOutput       int // 0: no bound
}

// InputTokens is an estimate: a token has about four bytes.
func (r *Request) InputTokens() int { return len(r.Prompt)/4 + 1 }

// step is how many tokens an answer without a bound is charged at a time.
const step = 500

// OutputTokens is what the answer is charged when it begins.
func (r *Request) OutputTokens() int { return cmp.Or(r.MaxOutput, step) }

// Model streams answers. All rules of a call are decided in one step.
type Model interface {
	// Ask begins an answer. The caller reads it to its end, or closes it.
	//
	//ratelimit:rule name=org-input key="{req.Org}" limit=100000 per=1h cost="req.InputTokens()"
	//ratelimit:rule name=org-output key="{req.Org}" limit=20000 per=1h cost="req.OutputTokens()"
	//ratelimit:rule name=team-output key="{req.Org}/{req.Team}" limit=11000 per=1h cost="req.OutputTokens()"
	//ratelimit:rule name=user-requests key="{req.User}" limit=20 per=1h
	//ratelimit:rule name=user-output key="{req.User}" limit=12000 per=1h cost="req.OutputTokens()"
	Ask(ctx context.Context, req *Request) (*Answer, error)
}
