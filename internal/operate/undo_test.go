package operate_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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

// An undo says that what it would bring back has ended, or what it would end, and changes nothing.
func TestUndoOfWhatHasEnded(t *testing.T) {
	ann := operate.Target{Rule: "login", Keys: []string{"ann"}}
	const soon, long = 50 * time.Millisecond, time.Hour
	for name, of := range map[string]struct {
		do   func(t *testing.T, l *ratelimit.Limiter, p *operate.Prefix) error
		want string
	}{
		"unblock": {func(t *testing.T, _ *ratelimit.Limiter, p *operate.Prefix) error {
			_, err := p.Block(t.Context(), kim, ann, soon)
			if err == nil {
				_, err = p.Unblock(t.Context(), kim, ann)
			}
			return err
		}, "what held before ended at "},
		"resume": {func(t *testing.T, _ *ratelimit.Limiter, p *operate.Prefix) error {
			_, err := p.Pause(t.Context(), kim, ann, soon)
			if err == nil {
				_, err = p.Resume(t.Context(), kim, ann)
			}
			return err
		}, "what held before ended at "},
		"a longer block": {func(t *testing.T, _ *ratelimit.Limiter, p *operate.Prefix) error {
			_, err := p.Block(t.Context(), kim, ann, soon)
			if err == nil {
				_, err = p.Block(t.Context(), kim, ann, long)
			}
			return err
		}, "what held before ended at "},
		"clear": {func(t *testing.T, l *ratelimit.Limiter, p *operate.Prefix) error {
			err := set(t, l, soon)
			if err == nil {
				_, err = p.ClearOverride(t.Context(), kim, ann)
			}
			return err
		}, "what held before ended at "},
		"set": {func(t *testing.T, l *ratelimit.Limiter, _ *operate.Prefix) error { return set(t, l, soon) }, "what was set ended at "},
		"block": {func(t *testing.T, _ *ratelimit.Limiter, p *operate.Prefix) error {
			_, err := p.Block(t.Context(), kim, ann, soon)
			return err
		}, "what was set ended at "},
	} {
		synctest.Test(t, func(t *testing.T) { // what is set for a moment holds until the next change, however busy the machine is
			l, p := inMemory(t, login)
			if err := of.do(t, l, p); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			time.Sleep(2 * soon)
			err := undo(t, p)
			all, _ := p.Changes(t.Context(), "")
			if _, isWrong := errors.AsType[operate.Wrong](err); !isWrong || !strings.HasPrefix(err.Error(), of.want) || all[0].What == "undo" {
				t.Errorf("%s: %v, want %s; the last change is %s", name, err, of.want, all[0].What)
			}
		})
	}
}

// set overrides a key for a while, which may be shorter than a second.
func set(t *testing.T, l *ratelimit.Limiter, d time.Duration) error {
	return l.Overrides().Set(ratelimit.WithActor(t.Context(), "kim", ""), "login", ratelimit.Override{Key: "ann", Factor: 2, Until: time.Now().Add(d)})
}

// An undo of a pause lets calls pass, also where the pause is beside the count, too.
func TestUndoOfAPause(t *testing.T) {
	t.Parallel()
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
