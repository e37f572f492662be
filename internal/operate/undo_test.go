package operate_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/operate"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

var kim = fleet.Actor{By: "kim", Reason: "ticket 8"}

// undo undoes the newest change.
func undo(t *testing.T, p *operate.Prefix) error {
	all, _ := p.Changes(t.Context(), "")
	_, err := p.Undo(t.Context(), kim, operate.Undoable(all))
	return err
}

// inMemory returns a limiter that uses rules, and its prefix.
func inMemory(t *testing.T, rules ...ratelimit.Rule) (*ratelimit.Limiter, *operate.Prefix) {
	l := ratelimit.New(memstore.New())
	if err := l.Check(rules...); err != nil {
		t.Fatal(err)
	}
	return l, operate.New(l, time.Minute)
}

// An undo leaves alone what a program has set since the change, or cleared, though no list of changes has that.
func TestUndoKeepsWhatProgramsSet(t *testing.T) {
	for name, program := range map[string]func(o *ratelimit.Overrides) error{
		"set":     func(o *ratelimit.Overrides) error { return o.Set(t.Context(), "login", ratelimit.Override{Factor: 3}) },
		"cleared": func(o *ratelimit.Overrides) error { return o.Clear(t.Context(), "login", "") },
		"":        func(*ratelimit.Overrides) error { return nil },
	} {
		l, p := inMemory(t, login)
		for _, limit := range []int64{8, 9} {
			if _, err := p.Override(t.Context(), kim, operate.Target{Rule: "login"}, operate.Wish{Limit: &limit, Forever: true}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Millisecond) // times of changes have milliseconds
		if err := program(l.Overrides()); err != nil {
			t.Fatal(err)
		}
		before, _ := p.InForce(t.Context())
		err := undo(t, p)
		after, _ := p.InForce(t.Context())
		switch _, isWrong := errors.AsType[operate.Wrong](err); {
		case name == "" && (err != nil || len(after) != 1 || *after[0].Limit != 8):
			t.Errorf("an undo leaves %+v, %v", after, err)
		case name != "" && (!isWrong || !strings.Contains(err.Error(), "a program, whose changes are not listed") || len(after) != len(before) || len(after) > 0 && after[0] != before[0]):
			t.Errorf("a program %s the override: an undo leaves %+v of %+v, %v", name, after, before, err)
		}
	}
}

// An undo of a pause lets calls pass, also where the pause is beside the count, too.
func TestUndoOfAPause(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	t.Cleanup(func() { _ = client.Close() })
	for name, store := range map[string]ratelimit.Store{"memory": memstore.New(), "Redis": redisstore.New(client, redisstore.WithTimeout(time.Minute))} {
		for _, pausable := range []bool{false, true} {
			rule := ratelimit.Rule{Name: fmt.Sprint("pausable.", pausable), Key: "{user}", Limit: 5, Per: time.Hour, Pausable: pausable}
			l := ratelimit.New(store)
			p := operate.New(l, time.Minute)
			if err := l.Check(rule); err != nil {
				t.Fatal(err)
			}
			redistest.Eventually(t, name+": the rule is known", func() bool {
				all, _ := p.Named(t.Context(), rule.Name)
				return len(all) == 1
			})
			passes := func() bool {
				d, err := l.Peek(t.Context(), ratelimit.Request{Rule: rule, Key: "203.0.113.7"})
				return err == nil && d.Allowed
			}
			if _, err := p.Pause(t.Context(), kim, operate.Target{Rule: rule.Name, Keys: []string{"203.0.113.7"}}, time.Hour); err != nil || passes() {
				t.Fatalf("%s: the key is not paused: %v", name, err)
			}
			if err := undo(t, p); err != nil || !passes() {
				t.Errorf("%s, %s: the key is still paused after an undo, %v", name, rule.Name, err)
			}
		}
	}
}

// An undo changes no setting that others read.
func TestUndoWhileOthersLook(t *testing.T) {
	_, p := inMemory(t, login)
	for _, d := range []time.Duration{time.Hour, 2 * time.Hour} {
		if _, err := p.Block(t.Context(), kim, operate.Target{Rule: "login", Keys: []string{"ann"}}, d); err != nil {
			t.Fatal(err)
		}
	}
	all, _ := p.Changes(t.Context(), "")
	var looks sync.WaitGroup
	looks.Go(func() {
		for range 1000 {
			_ = all[0].Before.Rule
		}
	})
	if err := undo(t, p); err != nil {
		t.Fatal(err)
	}
	looks.Wait()
}
