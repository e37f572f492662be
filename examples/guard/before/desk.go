// Package desk is a service as many are: a struct that handlers use by its own type. There is no interface that a wrapper could implement.
package desk

import (
	"context"
	"errors"
	"net/http"
)

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
type Desk struct {
	model Model
}

// New returns a desk that asks the model.
func New(model Model) *Desk { return &Desk{model: model} }

// Ask answers a question.
func (d *Desk) Ask(ctx context.Context, team, question string) (*Answer, error) {
	if question == "" {
		return nil, errors.New("the question is empty")
	}
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
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte(answer.Text))
	}
}
