package redisstore

import (
	"reflect"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// Facts are forgotten once a second. A fact for which all others were forgotten early starts no second timer.
func TestFactsHaveOneTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rule := &engine.Rule{Name: "r", Kind: engine.SlidingWindow}
		call := func(i int) *engine.Call {
			return &engine.Call{Claims: []engine.Claim{{Ask: engine.Ask{Rule: rule, Subject: strconv.Itoa(i), Limit: 1}}}}
		}
		var k answers
		swept := func() time.Duration {
			synctest.Wait()
			k.mu.Lock()
			defer k.mu.Unlock()
			return k.swept
		}
		for i := range maxFacts {
			k.findOrAdd(call(i))
		}
		time.Sleep(sweepEvery / 2)
		k.swept = clock() - minSweep
		last := k.findOrAdd(call(maxFacts))
		if n := k.size.Load(); last == nil || n != 1 {
			t.Fatalf("%d facts are left, the last one is %v", n, last)
		}
		last.refusal.Store(&refusal{dropAt: clock() + time.Hour})
		time.Sleep(sweepEvery / 2)
		first := swept()
		time.Sleep(sweepEvery * 3 / 4)
		if again := swept(); again != first {
			t.Errorf("facts were forgotten again after %v", again-first)
		}
		time.Sleep(sweepEvery / 4)
		if next := swept(); next != first+sweepEvery {
			t.Errorf("facts were forgotten again after %v, want %v", next-first, sweepEvery)
		}
	})
}

// Calls that differ in a field of a rule or a claim share no answer: they are not equal, or one of them is not plain. The fields that do not
// matter are those that the store does not look at, those that others compare, and those that Decide or Adjust set.
func TestEveryFieldTellsCallsApart(t *testing.T) {
	ignored := map[string]string{
		"hash": "follows from Name and Tag", "Instance": "the limiter decides by it", "OnError": "the limiter decides by it",
		"Cost": "a refusal covers all greater costs, and only calls of one permit are joined", "ID": "of Concurrency", "Renewed": "of Concurrency",
		"Member": "of Distinct", "Delta": "of Adjust",
	}
	answers := engine.Claim{}
	set(reflect.ValueOf(&answers).Elem())
	answers.Clear()
	claim := func() engine.Claim {
		return engine.Claim{Ask: engine.Ask{Rule: &engine.Rule{Name: "r", Kind: engine.TokenBucket}, Subject: "a"}}
	}
	differ := func(part string, v func(*engine.Claim) reflect.Value) {
		one := claim()
		for _, f := range reflect.VisibleFields(v(&one).Type()) {
			other := claim()
			if ignored[f.Name] != "" || f.Anonymous || f.Type == reflect.TypeFor[*engine.Rule]() {
				continue
			}
			if part == "Claim" && reflect.ValueOf(answers).FieldByIndex(f.Index).IsZero() { // Clear has cleared it
				continue
			}
			set(v(&other).FieldByIndex(f.Index))
			a, b := &engine.Call{Claims: []engine.Claim{one}}, &engine.Call{Claims: []engine.Claim{other}}
			if equal(a, b) && b.IsPlain() {
				t.Errorf("calls that differ in %s.%s share an answer", part, f.Name)
			}
		}
	}
	differ("Claim", func(c *engine.Claim) reflect.Value { return reflect.ValueOf(c).Elem() })
	differ("Rule", func(c *engine.Claim) reflect.Value { return reflect.ValueOf(c.Rule).Elem() })
}

// set sets a value, or all fields of a struct, to something that is not zero. It leaves unexported fields.
func set(v reflect.Value) {
	switch {
	case !v.CanSet():
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	case v.Kind() == reflect.String:
		v.SetString("x")
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			set(v.Field(i))
		}
	default:
		panic("set a " + v.Kind().String())
	}
}
