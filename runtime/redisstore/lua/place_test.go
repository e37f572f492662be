package lua

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// If a call waits for one of its rules, its other rules keep places, too. A later call uses the free places of all its rules, even of rules that
// would not delay it, because the permits of these places are already charged.
func TestFreePlaceOfARuleThatDoesNotWait(t *testing.T) {
	t.Parallel()
	client := redis.NewClient(&redis.Options{Addr: redistest.Start(t).Addr})
	defer client.Close()
	slow := &engine.Rule{Name: "slow", Tag: "1m", Kind: engine.SlidingWindow, Per: 60 * second}
	wide := &engine.Rule{Name: "wide", Tag: "1h", Kind: engine.SlidingWindow, Per: 3600 * second}
	decide := func(call *engine.Call) engine.Verdict {
		t.Helper()
		v, err := ReadDecision(decideOn(t, client, call)[0], call)
		if err != nil || !v.Admitted {
			t.Fatalf("the verdict is %+v, with error %v; want the call admitted", v, err)
		}
		return v
	}
	newCall := func() *engine.Call {
		return &engine.Call{Prefix: "p", Claims: []engine.Claim{
			{Ask: engine.Ask{Rule: slow, Subject: "s", Cost: 1, Limit: 1, Wait: 600 * second}},
			{Ask: engine.Ask{Rule: wide, Subject: "s", Cost: 1, Limit: 10}},
		}}
	}
	decide(newCall())
	leaver := newCall()
	left := decide(leaver)
	decide(newCall())
	for i := range leaver.Claims {
		leaver.Claims[i].Delta = -1
	}
	run := new(Run)
	run.AddAdjustment(leaver, left.Now)
	args := append(append([]any{"eval", Script, len(run.Keys)}, run.Keys...), run.Args...)
	if err := client.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
	if v := decide(newCall()); v.At != left.At {
		t.Fatalf("the call is admitted at %d, want the free place at %d", v.At, left.At)
	}
	peek := newCall()
	peek.Peek = true
	decide(peek)
	if room := peek.Claims[1].Room; room != 7 {
		t.Errorf("three calls leave room for %d, want 7", room)
	}
}

// A call that fails at its first claim does not mix up its keys with those of the next call in the run.
func TestFailedCallLeavesTheKeysOfTheNext(t *testing.T) {
	t.Parallel()
	v := newVirtual(t)
	newCall := func(subject string) *engine.Call {
		call := &engine.Call{Prefix: "p"}
		for _, name := range []string{"first", "second"} {
			r := &engine.Rule{Name: name, Tag: "1m", Kind: engine.SlidingWindow, Per: 60 * second, Block: second}
			call.Claims = append(call.Claims, engine.Claim{Ask: engine.Ask{Rule: r, Subject: subject, Cost: 1, Limit: 1, Wait: 600 * second}})
		}
		return call
	}
	v.client.Set(t.Context(), "p:first:{broken}:1m", "no list", 0)
	broken, whole, run := newCall("broken"), newCall("whole"), new(Run)
	run.AddDecision(broken, v.now)
	run.AddDecision(whole, v.now)
	reply, err := v.run(run)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ReadDecision(reply.([]any)[0], broken); err == nil {
		t.Error("a call whose key holds another type is decided")
	}
	if w, err := ReadDecision(reply.([]any)[1], whole); err != nil || !w.Admitted {
		t.Errorf("the next call gives %+v, error %v", w, err)
	}
	for _, key := range []string{"p:first:{whole}:1m", "p:second:{whole}:1m"} {
		if n := v.client.LLen(t.Context(), key).Val(); n != 1 {
			t.Errorf("%s has %d permits, want 1", key, n)
		}
	}
}

// An operator may give back the permits of a warm-up for which calls wait. If a call gives up then, free places come back with it, although the
// debt is shorter than they are. That makes nothing cold: the next call has the same price in the engine and in the script.
func TestFreePlacesAfterPlacesWereGivenBack(t *testing.T) {
	t.Parallel()
	v := newVirtual(t)
	r := &engine.Rule{Name: "r", Tag: "tag", Kind: engine.Warmup, Per: second, Warmup: 10 * second}
	cell := engine.NewCell(r)
	newCall := func() *engine.Call {
		return &engine.Call{Prefix: "p", Claims: []engine.Claim{{Ask: engine.Ask{Rule: r, Subject: "s", Cost: 1, Limit: 3, Wait: 600 * second}}}}
	}
	decide := func() *engine.Call {
		t.Helper()
		call, own := newCall(), newCall()
		w, err := v.decide(call)
		if own := own.Decide([]*engine.Cell{&cell}, v.now); err != nil || w != own {
			t.Fatalf("the script says %+v, error %v, the engine %+v", w, err, own)
		}
		if got, want := call.Claims[0].Extra, own.Claims[0].Extra; got != want {
			t.Fatalf("the call costs %d µs more in the script, %d in the engine", got, want)
		}
		return call
	}
	adjust := func(call *engine.Call, delta int64) {
		call.Claims[0].Delta = delta
		v.adjust(call)
		call.Adjust([]*engine.Cell{&cell}, v.now)
	}
	var waiting []*engine.Call
	for range 30 { // until no idle time is stored; the debt is that of 45 permits then, as cold ones cost more
		waiting = append(waiting, decide())
	}
	for _, call := range waiting[18:26] {
		adjust(call, -1)
	}
	given := newCall()
	given.Change = engine.Gives
	adjust(given, -45)
	if at := v.client.PExpireTime(t.Context(), "p:r:{s}:tag").Val().Microseconds(); at < cell.State(r).Expiry(r) {
		t.Errorf("the state expires at %d, want %d or later", at, cell.State(r).Expiry(r))
	}
	decide()
	adjust(decide(), -1)
	decide()
}

// When permits have left a sliding window, their free places are gone, too. Otherwise a call that waits later takes the permit of another call for
// one of these places. A trigger removes permits of later times. A clock that is set back makes times later again whose permits have left.
func TestFreePlacesGoWithTheirPermits(t *testing.T) {
	t.Parallel()
	r := &engine.Rule{Name: "r", Tag: "1ms", Kind: engine.SlidingWindow, Per: 1000}
	v, cells := newVirtual(t), make([]*engine.Cell, 1)
	script := func(call *engine.Call) engine.Verdict {
		verdict, err := v.decide(call)
		if err != nil {
			t.Fatal(err)
		}
		return verdict
	}
	for _, store := range []struct {
		name   string
		decide func(*engine.Call) engine.Verdict
		adjust func(*engine.Call)
	}{
		{"script", script, v.adjust},
		{"engine", func(call *engine.Call) engine.Verdict { return call.Decide(cells, v.now) }, func(call *engine.Call) { call.Adjust(cells, v.now) }},
	} {
		for _, cause := range []string{"trigger", "clock"} {
			t.Run(store.name+" "+cause, func(t *testing.T) {
				cell := engine.NewCell(r)
				cells[0] = &cell
				v.set(start)
				admit := func(ask engine.Ask) *engine.Call {
					ask.Rule, ask.Subject, ask.Limit = r, cause, 3
					call := &engine.Call{Prefix: "p", Claims: []engine.Claim{{Ask: ask}}}
					if !store.decide(call).Admitted {
						t.Fatal("a call is not admitted")
					}
					return call
				}
				leave := func(call *engine.Call) {
					call.Rollback, call.Claims[0].Delta = true, -1
					store.adjust(call)
				}
				var calls []*engine.Call
				for range 15 { // three each millisecond
					calls = append(calls, admit(engine.Ask{Cost: 1, Wait: second}))
				}
				for _, i := range []int{3, 6, 9} {
					leave(calls[i])
				}
				kept := calls[12:] // whose permits are the three that stay in the list
				if cause == "trigger" {
					admit(engine.Ask{Cost: 3, Mode: engine.Trigger})
				} else {
					v.set(start + second)
					kept[0] = admit(engine.Ask{Cost: 1})
					v.set(start)
				}
				for _, call := range kept {
					leave(call)
				}
				v.set(start + 5)
				for i := range int64(9) {
					if got, want := admit(engine.Ask{Cost: 1, Wait: second}).Claims[0].At, v.now+i/3*1000; got != want {
						t.Fatalf("call %d begins %d us after the first, want %d", i, got-v.now, want-v.now)
					}
				}
			})
		}
	}
}
