// Package desk is the service of ../before with limits. Its type, its callers and its tests stay; the method calls a guard first.
package desk

import (
	"context"
	"errors"
	"net/http"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

//go:generate go run github.com/ratelimit-go/ratelimit/cmd/ratelimit

// Model answers questions. It is somebody else's service.
type Model interface {
	Complete(ctx context.Context, prompt string) (text string, tokens int, err error)
}

// Answer is an answer with what it cost.
type Answer struct {
	Text   string
	Tokens int
}

// Desk answers the questions of teams.
//
//ratelimit:guard
type Desk struct {
	model Model
	guard *DeskGuard
}

// New returns a desk that asks the model.
func New(model Model, limiter *ratelimit.Limiter) *Desk {
	return &Desk{model: model, guard: NewDeskGuard(limiter)}
}

// Ask answers a question.
//
//ratelimit:rule name=tokens key="{team}" limit=20000 per=1h cost="len(question)" settle="answer?.Tokens ?? 0"
//ratelimit:rule name=answers key="{team}" limit=100 per=1d refund=error
//ratelimit:rule name=model limit=60 per=1m wait=1s pause="retryAfter(err)"
//ratelimit:rule name=running key="{team}" algorithm=concurrency limit=2 message="Two questions of {team} are being answered."
func (d *Desk) Ask(ctx context.Context, team, question string) (answer *Answer, err error) {
	if question == "" {
		return nil, errors.New("the question is empty")
	}
	done, err := d.guard.Ask(ctx, team, question)
	if err != nil {
		return nil, err
	}
	defer done(&answer, &err)
	text, tokens, err := d.model.Complete(ctx, question)
	if err != nil {
		return nil, err
	}
	return &Answer{text, tokens}, nil
}

// Handler answers GET /ask?team=…&q=…
func Handler(d *Desk) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		answer, err := d.Ask(r.Context(), r.FormValue("team"), r.FormValue("q"))
		if err != nil {
			httplimit.Answer(w, r, err) // 429 and the message for a refusal, 500 for others
			return
		}
		_, _ = w.Write([]byte(answer.Text))
	}
}
