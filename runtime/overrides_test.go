package ratelimit

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
	"github.com/ratelimit-go/ratelimit/runtime/internal/memory"
)

func TestOverrideText(t *testing.T) {
	when := time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)
	for text, want := range map[string]Override{
		`{"limit":5}`:                                        {Limit: new(int64(5))},
		`{"limit":0}`:                                        {Limit: new(int64(0))},
		`{"per":"1m30s"}`:                                    {Per: 90 * time.Second},
		`{"burst":7}`:                                        {Burst: 7},
		`{"mode":"enforce"}`:                                 {Mode: new(ModeEnforce)},
		`{"mode":"shadow"}`:                                  {Mode: new(ModeShadow)},
		`{"limit":1,"mode":"trigger"}`:                       {Limit: new(int64(1)), Mode: new(ModeTrigger)},
		`{"limit":9,"per":"1d"}`:                             {Limit: new(int64(9)), Per: 24 * time.Hour},
		`{"limit":1000000000000000}`:                         {Limit: new(int64(maxLimit))},
		`{"limit":10000000,"burst":10}`:                      {Limit: new(int64(maxBucketLimit)), Burst: 10},
		`{"limit":2,"until":"2026-11-22T18:00:00Z"}`:         {Limit: new(int64(2)), Until: when},
		`{"burst":2,"by":"ann","at":"2026-11-22T18:00:00Z"}`: {Burst: 2, By: "ann", At: when},
	} {
		got, err := parseOverride("r", text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, error %v; want %+v", text, got, err, want)
		}
		if back, err := json.Marshal(want); err != nil || string(back) != text {
			t.Errorf("%+v: got %s, error %v; want %s", want, back, err, text)
		}
	}
}

// If the context has ended, nothing is changed.
func TestOverridesAfterTheContextEnded(t *testing.T) {
	o := New(memory.New(nil, 10, 1<<20)).Overrides()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 20 {
		if err := o.Set(ctx, "r", Override{Burst: 2}); !errors.Is(err, context.Canceled) {
			t.Errorf("Set: error %v", err)
		}
	}
	if _, err := o.All(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("All: error %v", err)
	}
	if all, err := o.All(t.Context()); len(all) > 0 || err != nil {
		t.Errorf("got %v, error %v", all, err)
	}
}

// An override in the store may have durations as directives write them, such as 1d.
func TestOverridePeriods(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{"1d": day, "1w2d12h": 9*day + 12*time.Hour, "1.5h": 90 * time.Minute, "90s": 90 * time.Second} {
		if got, err := parseOverride("r", `{"per":"`+text+`"}`); err != nil || got.Per != want {
			t.Errorf("%s: got %+v, error %v", text, got, err)
		}
	}
}

func TestMalformedOverrideTexts(t *testing.T) {
	for text, want := range map[string]string{
		``:                                 `unexpected end of JSON input`,
		`5`:                                `json: cannot unmarshal number into Go value of type ratelimit.overrideText`,
		`{}`:                               `rule "r": override: found no change; expected limit, per, burst or mode`,
		`{"until":"2026-11-22T18:00:00Z"}`: `rule "r": override: found no change; expected limit, per, burst or mode`,
		`{"limits":5}`:                     `json: unknown field "limits"`,
		`{"limit":NaN}`:                    `invalid character 'N' looking for beginning of value`,
		`{"limit":1e30}`:                   `json: cannot unmarshal number 1e30 into Go struct field overrideText.limit of type int64`,
		`{"limit":0.5}`:                    `json: cannot unmarshal number 0.5 into Go struct field overrideText.limit of type int64`,
		`{"limit":5}{"limit":6}`:           `invalid character '{' after top-level value`,
		`{"limit":-1}`:                     `rule "r": limit: found -1; expected 0 to 1000000000000000 for a fixed-window`,
		`{"limit":5,"per":"day"}`:          `per is "day"; expected a duration above zero, such as 90s, 24h or 1d`,
		`{"mode":"off"}`:                   `mode: found "off"; expected enforce, shadow or trigger`,
		`{"per":"-1s"}`:                    `per is "-1s"; expected a duration above zero, such as 90s, 24h or 1d`,
		`{"per":"1mo"}`:                    `unknown unit "mo" in "1mo"; expected ns, us, ms, s, m, h, d or w`,
		`{"per":"4000d"}`:                  `rule "r": per: found 4000d; expected whole microseconds, up to 3660d`,
		`{"limit":5,"by":"` + strings.Repeat("x", 1000) + `"}`: `found 1019 bytes; expected at most 1000`,
	} {
		want = `override of rule "r" in the store: ` + want
		if _, err := parseOverride("r", text); err == nil || err.Error() != want {
			t.Errorf("%.100s:\n got %v\nwant %s", text, err, want)
		}
	}
	if _, err := parseOverride("r\x1b", "5"); err == nil || !strings.HasPrefix(err.Error(), `override of rule "r\x1b" in`) {
		t.Errorf("got %v", err)
	}
}

// An override puts any rule in shadow or trigger mode, even a rule with arguments that these modes do not allow.
func TestOverrideOfTheMode(t *testing.T) {
	for _, r := range []Rule{
		{Limit: 1, Per: time.Minute, Wait: time.Second, Block: time.Second},
		{Limit: 1, Per: time.Minute, Algorithm: LeakyBucket, Wait: time.Second, Queue: 1},
		{Limit: 1, Per: time.Minute, Lease: time.Millisecond},
	} {
		for _, mode := range []Mode{ModeShadow, ModeTrigger} {
			if mode == ModeTrigger && r.Algorithm == LeakyBucket {
				continue
			}
			if err := cmp.Or(r.Validate(), Override{Mode: &mode}.apply(r).Validate()); err != nil {
				t.Errorf("%+v in mode %s: %v", r, mode, err)
			}
		}
	}
}

// Set and SetLocal refuse an override that no rule can have.
func TestImpossibleOverrides(t *testing.T) {
	l := New(memory.New(nil, 10, 1<<20))
	limit := func(n int64) *int64 { return &n }
	for argument, overrides := range map[string][]Override{
		"override": {{}, {By: "ann"}},
		"limit":    {{Limit: limit(-1)}, {Limit: limit(maxLimit + 1)}, {Limit: limit(maxBucketLimit + 1), Burst: 1}},
		"per":      {{Per: -time.Second}, {Per: time.Nanosecond}, {Per: maxPer + time.Hour}},
		"burst":    {{Burst: -1}, {Burst: maxBucketLimit + 1}},
		"mode":     {{Mode: new(Mode(3))}, {Limit: limit(0), Mode: new(ModeTrigger)}, {Burst: 1, Mode: new(ModeTrigger)}},
		"by":       {{Limit: limit(1), By: strings.Repeat("x", 201)}, {Limit: limit(1), By: "\xff"}},
		"name":     {{Limit: limit(1)}},
	} {
		name := "r"
		if argument == "name" {
			name = "a b"
		}
		for _, o := range overrides {
			err, ok := l.Overrides().SetLocal(name, o).(*RuleError)
			if !ok || err.Argument != argument {
				t.Errorf("%+v: got error %v, want one about %s", o, err, argument)
			}
		}
	}
	far := time.Unix(1<<40, 0) // has no JSON text: its year is beyond 9999
	for _, o := range []Override{{Limit: limit(1), Until: far}, {Limit: limit(1), At: far}} {
		if err, ok := l.Overrides().Set(t.Context(), "r", o).(*RuleError); !ok || err.Argument != "override" {
			t.Errorf("%+v: got error %v", o, err)
		}
	}
	if l.settings.current.Load() != nil {
		t.Error("a refused override is in force")
	}
}

// A rule with an override keeps its keys in the store, unless the override changes the window.
func TestOverrideKeepsTheIdentity(t *testing.T) {
	l := New(memory.New(nil, 10, 1<<20))
	rule, err := Rule{Name: "p.T.M", Key: "{phone}", Limit: 3, Per: time.Minute, Wait: time.Second, Block: time.Hour, Burst: 2, Algorithm: TokenBucket}.prepare("p.T.M")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Override{{Limit: new(int64(1))}, {Burst: 9}, {Mode: new(ModeShadow)}} {
		if err := l.Overrides().SetLocal("p.T.M", o); err != nil {
			t.Fatal(err)
		}
		changed, _ := l.settings.applied(rule)
		if changed == rule || changed.tag != rule.tag {
			t.Errorf("%+v: %+v has the tag %v, want %v", o, changed.Rule, changed.tag, rule.tag)
		}
		if again, _ := l.settings.applied(rule); again != changed {
			t.Errorf("%+v: prepared for each call", o)
		}
	}
	if err := l.Overrides().SetLocal("p.T.M", Override{Per: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if changed, _ := l.settings.applied(rule); changed.tag != "bucket:1h:{phone}" {
		t.Errorf("tag %v", changed.tag)
	}
}

func TestOverridesAllocateNothing(t *testing.T) {
	l := New(memory.New(nil, 1, 1<<20))
	rule, err := Rule{Name: "r", Limit: 1, Per: time.Minute}.prepare("")
	if err != nil {
		t.Fatal(err)
	}
	l.settings.due.Store(false)
	for _, changed := range []bool{false, true} {
		if changed {
			if err := l.Overrides().SetLocal("r", Override{Limit: new(int64(5))}); err != nil {
				t.Fatal(err)
			}
		}
		n := testing.AllocsPerRun(1000, func() {
			l.settings.follow()
			if got, _ := l.settings.applied(rule); (got.Limit == 5) != changed {
				t.Errorf("limit %d", got.Limit)
			}
		})
		if n > 0 {
			t.Errorf("overridden %v: %v allocations a call", changed, n)
		}
	}
}

// logged returns a limiter on a store, and the buffer that it logs to.
func logged(store *memory.Store) (*Limiter, *bytes.Buffer) {
	var log bytes.Buffer
	return New(store, WithLogger(slog.New(slog.NewTextHandler(&log, nil)))), &log
}

// A malformed override does not replace an earlier one, and is logged once, even if other overrides change.
func TestMalformedOverrideReplacesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, store := context.Background(), memory.New(nil, 10, 1<<20)
		l, log := logged(store)
		if err := l.Overrides().Set(ctx, "r", Override{Limit: new(int64(5))}); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Set(ctx, l.list(listOverrides), "r", `{"limits":1}`, nil); err != nil {
			t.Fatal(err)
		}
		for limit := range int64(3) { // the first call has the texts read
			time.Sleep(readEvery + time.Millisecond)
			l.settings.follow()
			synctest.Wait()
			if err := l.Overrides().Set(ctx, "other", Override{Limit: &limit}); err != nil {
				t.Fatal(err)
			}
		}
		if v := l.settings.current.Load().overrides["r"]; v.Limit == nil || *v.Limit != 5 {
			t.Errorf("in force is %+v", v)
		}
		if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "limits") {
			t.Errorf("logged:\n%s", log)
		}
		if err := l.Overrides().Err(); err == nil || !strings.Contains(err.Error(), "limits") {
			t.Errorf("got error %v", err)
		}
		if all, err := l.Overrides().All(ctx); len(all) != 1 || err == nil {
			t.Errorf("got %v, error %v", all, err)
		}
	})
}

// handler is a log handler that calls a function for each line.
type handler struct {
	slog.Handler
	handle func()
}

func (h handler) Handle(context.Context, slog.Record) error { h.handle(); return nil }

func (h handler) Enabled(context.Context, slog.Level) bool { return true }

// A log handler may call the limiter that logs: to change its settings, to decide, or to read its errors.
func TestLogHandlerMayCallTheLimiter(t *testing.T) {
	for name, ask := range map[string]func(context.Context, *Limiter) error{
		"follow": func(_ context.Context, l *Limiter) error { l.settings.follow(); synctest.Wait(); return nil },
		"set": func(ctx context.Context, l *Limiter) error {
			return l.Overrides().Set(ctx, "other", Override{Burst: 2})
		},
		"ping": func(ctx context.Context, l *Limiter) error { return l.Ping(ctx) },
	} {
		synctest.Test(t, func(t *testing.T) {
			store, called := memory.New(nil, 10, 1<<20), 0
			var l *Limiter
			l = New(store, WithLogger(slog.New(handler{handle: func() {
				called++
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				if l.Overrides().Err() == nil {
					t.Errorf("%s: no error says why there is a line", name)
				}
				if err := errors.Join(l.Overrides().SetLocal("r", Override{Burst: 3}), l.Overrides().Set(ctx, "r", Override{Burst: 3})); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if _, err := l.Allow(ctx, Request{Rule: PerMinute(1)}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}})))
			if _, err := store.Set(t.Context(), l.list(listOverrides), "broken", `{"limits":1}`, nil); err != nil {
				t.Fatal(err)
			}
			if err := ask(t.Context(), l); err != nil || called != 1 {
				t.Errorf("%s: %d lines, error %v", name, called, err)
			}
		})
	}
}

// Err ignores an override that did not suit a rule and has ended, even if nobody has called since.
func TestErrOfAnOverrideThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(memory.New(nil, 100, 1<<20))
		rule, err := Rule{Name: "r", Limit: 1, Cron: "@daily"}.prepare("")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Overrides().SetLocal("r", Override{Per: time.Minute, Until: time.Now().Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		l.settings.applied(rule)
		if err := l.Overrides().Err(); err == nil || !strings.Contains(err.Error(), "cron") {
			t.Errorf("got error %v", err)
		}
		time.Sleep(time.Minute)
		if err := l.Overrides().Err(); err != nil {
			t.Error(err)
		}
	})
}

// stuck is a store that does not answer when it is asked for its settings.
type stuck struct{ *memory.Store }

func (stuck) Settings(ctx context.Context, _ string) (map[string]string, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// No call waits for overrides.
func TestNoCallWaitsForOverrides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, began := New(stuck{memory.New(nil, 10, 1<<20)}), time.Now()
		for _, call := range []func(context.Context, ...Request) (Decision, error){l.Allow, l.Wait, l.Peek, l.Allow} {
			if _, err := call(t.Context(), Request{Rule: PerSecond(9)}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("the calls took %s", took)
		}
		time.Sleep(time.Minute) // until the work in the background has ended
		if _, ok := errors.AsType[*StoreError](l.Overrides().Err()); !ok {
			t.Errorf("got %v", l.Overrides().Err())
		}
	})
}

// While the store is being read, a change waits until its context ends. A call in that time makes the limiter read the store again.
func TestOverridesWhileTheyAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(memory.New(nil, 10, 1<<20))
		l.settings.reading <- struct{}{}
		ctx, end := context.WithTimeout(t.Context(), time.Second)
		defer end()
		change := Override{Limit: new(int64(1))}
		if err := l.Overrides().Set(ctx, "r", change); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a change that waits too long: %v", err)
		}
		if _, err := l.Allow(t.Context(), Request{Rule: PerMinute(1)}); err != nil || !l.settings.due.Load() {
			t.Errorf("error %v, to be read again: %t", err, l.settings.due.Load())
		}
		<-l.settings.reading
		if err := l.Overrides().Set(t.Context(), "r", change); err != nil {
			t.Error(err)
		}
	})
}

// A limiter that is called all the time follows the store within two seconds.
func TestOverridesAreFollowedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil, 100, 1<<20)
		l, other := New(store), New(store)
		call := func() {
			if _, err := l.Peek(context.Background(), Request{Rule: PerSecond(1)}); err != nil {
				t.Fatal(err)
			}
		}
		call()
		if err := other.Overrides().Set(context.Background(), "r", Override{Limit: new(int64(5))}); err != nil {
			t.Fatal(err)
		}
		for set := time.Now(); time.Since(set) < 2*time.Second; {
			time.Sleep(10 * time.Millisecond)
			call()
		}
		if table := l.settings.current.Load(); table == nil || *table.overrides["r"].Limit != 5 {
			t.Error("the override is not known after two seconds")
		}
	})
}

// An override ends at its time.
func TestOverrideEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(memory.New(nil, 100, 1<<20))
		for name, after := range map[string]time.Duration{"a": time.Minute, "b": time.Hour} {
			if err := l.Overrides().SetLocal(name, Override{Limit: new(int64(5)), Until: time.Now().Add(after)}); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []int{2, 1, 0} {
			known := 0
			for _, name := range []string{"a", "b"} {
				if _, pinned := l.settings.applied(&prepared{Rule: Rule{Name: name, Limit: 1, Per: time.Minute}}); pinned {
					known++
				}
			}
			if known != want {
				t.Errorf("%d overrides are in force, want %d", known, want)
			}
			time.Sleep(59*time.Minute + 59*time.Second)
		}
	})
}

// registered returns a store with n entries of a list, all with the same text.
func registered(t *testing.T, list, text string, n int) *memory.Store {
	t.Helper()
	store, texts := memory.New(nil, 100, 1<<20), map[string]string{}
	name := map[string]string{listOverrides: "r%d", listBlocked: "r:{%d}"}[list]
	for i := range n {
		texts[fmt.Sprintf(name, i)] = text
	}
	if err := store.Register(t.Context(), DefaultPrefix+":"+list, texts, 0); err != nil {
		t.Fatal(err)
	}
	return store
}

// An entry of each list that lasts, and one that has ended.
var (
	lasting = map[string]string{listOverrides: `{"limit":1}`, listBlocked: `{"until":"2126-11-22T18:00:00Z"}`}
	ended   = map[string]string{listOverrides: `{"limit":1,"until":"2020-11-22T18:00:00Z"}`, listBlocked: `{"until":"2020-11-22T18:00:00Z"}`}
)

// setOne adds an entry to a list.
func setOne(l *Limiter, list string) error {
	if list == listOverrides {
		return l.Overrides().Set(context.Background(), "login", Override{Limit: new(int64(1))})
	}
	return l.Block(context.Background(), time.Hour, Request{Rule: Rule{Name: "login"}, Key: "ann"})
}

// Entries that have ended make room, however many there are, and limiters follow the new one.
func TestEndedSettingsMakeRoom(t *testing.T) {
	for list, text := range ended {
		for _, n := range []int{maxSettings, 3 * engine.MaxSettings} {
			store := registered(t, list, text, n)
			l := New(store)
			if err := setOne(l, list); err != nil {
				t.Errorf("%s: %v", list, err)
			}
			texts, err := store.Settings(t.Context(), l.list(list))
			if len(texts) != 1 || err != nil || l.settings.current.Load() == nil {
				t.Errorf("%s: %d are kept of %d, error %v; in force: %v", list, len(texts), n, err, l.settings.current.Load())
			}
		}
	}
}

// If a list is full, Set and Block add nothing, and return an error.
func TestSettingsAreBounded(t *testing.T) {
	for list, text := range lasting {
		store := registered(t, list, text, maxSettings)
		l := New(store)
		err, ok := errors.AsType[*RuleError](setOne(l, list))
		if !ok || !strings.Contains(err.Error(), "there would be more than 1000; remove some first") {
			t.Errorf("%s: error %v", list, err)
		}
		if texts, _ := store.Settings(t.Context(), l.list(list)); len(texts) != maxSettings {
			t.Errorf("%s: there are %d", list, len(texts))
		}
		more := New(registered(t, list, text, maxSettings+200))
		if err := more.Overrides().Set(t.Context(), "r5", Override{Limit: new(int64(2))}); err != nil && list == listOverrides {
			t.Errorf("an override that is there cannot be changed: %v", err)
		}
	}
}

// Programs that add entries at the same time can exceed the bound a little. Limiters follow all of them.
func TestSettingsALittleBeyondTheBound(t *testing.T) {
	for list, text := range lasting {
		l := New(registered(t, list, text, maxSettings+8))
		if err := l.Ping(t.Context()); err != nil {
			t.Error(err)
		}
		in := l.settings.current.Load()
		if in == nil || len(in.overrides)+len(in.blocks) != maxSettings+8 || l.Overrides().Err() != nil {
			t.Errorf("%s: in force: %v, error %v", list, in, l.Overrides().Err())
		}
	}
}

// A limiter holds a bounded number of overrides and blocks, whatever the store has. It logs an excess once, and is ready.
func TestTooManyOverrides(t *testing.T) {
	const n = engine.MaxSettings + 1
	for list, text := range lasting {
		store := registered(t, list, text, n)
		l, log := logged(store)
		for range 3 {
			_ = l.settings.read(t.Context())
		}
		if err := l.Ping(t.Context()); l.settings.current.Load() != nil || err != nil {
			t.Errorf("%s: in force: %v; error %v", list, l.settings.current.Load(), err)
		}
		if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "more than 2000") {
			t.Errorf("%s: logged:\n%s", list, log)
		}
		all, err := l.Overrides().All(t.Context())
		blocked, failed := l.Blocked(t.Context())
		if err := joinErrors(err, failed); err == nil || err.Error() != l.Overrides().Err().Error() || len(all)+len(blocked) != n {
			t.Errorf("%s: got %d overrides and %d blocks, error %v", list, len(all), len(blocked), err)
		}
		if _, ok := errors.AsType[*RuleError](setOne(l, list)); !ok {
			t.Errorf("%s: one that is not followed is set", list)
		}
	}
}

func BenchmarkOverridden(b *testing.B) {
	l := New(memory.New(nil, 100, 1<<20))
	rule, err := Rule{Name: "r", Limit: 1, Per: time.Minute}.prepare("")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if got, _ := l.settings.applied(rule); got != rule {
			b.Fatal("overridden")
		}
	}
}

// full returns as many overrides as a limiter follows, each of about the largest size.
func full() map[string]string {
	texts := make(map[string]string, maxSettings)
	for i := range maxSettings {
		text := fmt.Sprintf(`{"limit":%d,"per":"1m","burst":5,"mode":"shadow","until":"2126-11-22T18:00:00Z","by":%q}`, i+1, strings.Repeat("a", maxBy))
		texts[fmt.Sprint("rule", i)] = text + strings.Repeat(" ", maxSettingBytes-len(text))
	}
	return texts
}

// A limiter follows the largest number of overrides. It does not parse them again if nothing has changed.
func TestAsManyOverridesAsThereMayBe(t *testing.T) {
	store := memory.New(nil, 10, 1<<20)
	l := New(store)
	if err := store.Register(t.Context(), l.list(listOverrides), full(), 0); err != nil {
		t.Fatal(err)
	}
	read := func() *inForce {
		if err := l.settings.read(t.Context()); err != nil {
			t.Fatal(err)
		}
		return l.settings.current.Load()
	}
	first := read()
	if first == nil || len(first.overrides) != maxSettings || l.Overrides().Err() != nil {
		t.Fatalf("they are not followed; error %v", l.Overrides().Err())
	}
	if read() != first {
		t.Error("what has not changed is parsed again")
	}
}

// BenchmarkTakeOverrides parses the overrides of a full store. A limiter does this when they change, at most once a second.
func BenchmarkTakeOverrides(b *testing.B) {
	l, texts := New(memory.New(nil, 10, 1<<20), WithLogger(slog.New(slog.DiscardHandler))), full()
	for b.Loop() {
		l.settings.overrides.texts = nil
		l.settings.overrides.take(texts, parseOverride, &l.settings.unlogged)
		l.settings.enforce()
	}
}
