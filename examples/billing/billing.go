// Package billing shows how to bill what calls have cost, such as tokens of a language model. A [Journal] is an observer that writes a line
// for each settlement, and [Sum] adds the lines up by customer and rule.
//
// A call is billed when it is settled. So a program that is killed bills nothing that the store has not counted: at most, it does not bill
// calls that were on their way, and permits that were taken ahead.
package billing

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Account is what a customer pays separately.
type Account struct {
	Customer string `json:"customer"` // the key of the rule
	Rule     string `json:"rule"`
}

// line is what a call has cost.
type line struct {
	Account
	Cost int64 `json:"cost"`
}

// Journal writes what calls have cost. It is safe for concurrent use.
type Journal struct {
	mu    sync.Mutex
	out   io.Writer
	rules []string
}

// NewJournal returns a journal of the rules with these names. Settle their calls, or give them back, but not both: the journal keeps what was
// settled. Each line is written by one call of out, such as a file that was opened to append, so that killing the program leaves whole lines.
func NewJournal(out io.Writer, rules ...string) *Journal { return &Journal{out: out, rules: rules} }

// Observe is an observer for [ratelimit.WithObserver].
func (j *Journal) Observe(ctx context.Context, e *ratelimit.Event) {
	if e.Kind != ratelimit.EventSettled {
		return // an estimate, or a call that was given back or gave up: it costs nothing
	}
	if _, lost := errors.AsType[*ratelimit.StoreError](e.Err); lost {
		return // the store may not have counted it
	}
	for i := range e.Rules {
		o := &e.Rules[i]
		if !slices.Contains(j.rules, o.Rule) {
			continue
		}
		if err := j.write(line{Account{o.Key, o.Rule}, o.Cost}); err != nil {
			slog.ErrorContext(ctx, "a call is not billed", "rule", o.Rule, "cost", o.Cost, "err", err)
		}
	}
}

func (j *Journal) write(l line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	_, err = j.out.Write(append(text, '\n'))
	return err
}

// Sum adds up a journal.
func Sum(journal io.Reader) (map[Account]int64, error) {
	sums := map[Account]int64{}
	lines := bufio.NewScanner(journal)
	for n := 1; lines.Scan(); n++ {
		var l line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		sums[l.Account] += l.Cost
	}
	return sums, lines.Err()
}
