package ratelimit

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/runtime/internal/memory"
)

func TestOverrideText(t *testing.T) {
	for text, want := range map[string]Override{
		`{"limit":5}`:                   {Limit: 5},
		`{"limit":0}`:                   {Limit: NoPermits},
		`{"per":"1m30s"}`:               {Per: 90 * time.Second},
		`{"burst":7}`:                   {Burst: 7},
		`{"mode":"enforce"}`:            {Mode: ModeEnforceNow},
		`{"mode":"shadow"}`:             {Mode: ModeShadow},
		`{"limit":1,"mode":"trigger"}`:  {Limit: 1, Mode: ModeTrigger},
		`{"limit":9,"per":"24h0m0s"}`:   {Limit: 9, Per: 24 * time.Hour},
		`{"limit":1000000000000000}`:    {Limit: maxLimit},
		`{"limit":10000000,"burst":10}`: {Limit: maxBucketLimit, Burst: 10},
	} {
		got, err := parseOverride("r", text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, error %v; want %+v", text, got, err, want)
		}
		if back, err := json.Marshal(want); err != nil || string(back) != text {
			t.Errorf("%+v: got %s, error %v; want %s", want, back, err, text)
		}
	}
}

// The durations of directives may stand in the store.
func TestOverridePeriods(t *testing.T) {
	const day = 24 * time.Hour
	for text, want := range map[string]time.Duration{"1d": day, "1w2d12h": 9*day + 12*time.Hour, "1.5h": 90 * time.Minute, "90s": 90 * time.Second} {
		if got, err := parseOverride("r", `{"per":"`+text+`"}`); err != nil || got != (Override{Per: want}) {
			t.Errorf("%s: got %+v, error %v", text, got, err)
		}
	}
}

func TestMalformedOverrideTexts(t *testing.T) {
	for text, want := range map[string]string{
		``:                        `override of rule "r" in the store: unexpected end of JSON input`,
		`5`:                       `override of rule "r" in the store: json: cannot unmarshal number into Go value of type ratelimit.overrideText`,
		`{}`:                      `override of rule "r" in the store: rule "r": override: found no change; for a limit of 0 write NoPermits, for enforce ModeEnforceNow`,
		`{"limits":5}`:            `override of rule "r" in the store: json: unknown field "limits"`,
		`{"limit":-1}`:            `override of rule "r" in the store: limit: found -1; expected 0 or more`,
		`{"limit":5,"per":"day"}`: `override of rule "r" in the store: per is "day"; expected a duration above zero, such as 90s, 24h or 1d`,
		`{"mode":"off"}`:          `override of rule "r" in the store: mode: found "off"; expected enforce, shadow or trigger`,
		`{"per":"-1s"}`:           `override of rule "r" in the store: per is "-1s"; expected a duration above zero, such as 90s, 24h or 1d`,
		`{"per":"1mo"}`:           `override of rule "r" in the store: unknown unit "mo" in "1mo"; expected ns, us, ms, s, m, h, d or w`,
		`{"per":"4000d"}`:         `override of rule "r" in the store: rule "r": per: found 4000d; expected whole microseconds, up to 3660d`,
	} {
		if _, err := parseOverride("r", text); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

// What no rule can have is refused at once.
func TestImpossibleOverrides(t *testing.T) {
	l := New(nil)
	for argument, overrides := range map[string][]Override{
		"override": {{}, {Mode: ModeEnforce}},
		"limit":    {{Limit: -2}, {Limit: maxLimit + 1}, {Limit: maxBucketLimit + 1, Burst: 1}},
		"per":      {{Per: -time.Second}, {Per: time.Nanosecond}, {Per: maxPer + time.Hour}},
		"burst":    {{Burst: -1}, {Burst: maxBucketLimit + 1}},
		"mode":     {{Mode: 3}, {Mode: ModeEnforceNow - 1}, {Limit: NoPermits, Mode: ModeTrigger}, {Burst: 1, Mode: ModeTrigger}},
		"name":     {{Limit: 1}},
	} {
		name := "r"
		if argument == "name" {
			name = "a b"
		}
		for _, o := range overrides {
			err, ok := l.Override(name, o).(*RuleError)
			if !ok || err.Argument != argument {
				t.Errorf("%+v: got error %v, want one about %s", o, err, argument)
			}
		}
	}
	if l.overrides.table.Load() != nil {
		t.Error("a refused override is in force")
	}
}

// An override leaves a rule's states where they are, unless it changes the window.
func TestOverrideKeepsTheIdentity(t *testing.T) {
	l := New(nil)
	rule, err := Rule{Name: "p.T.M", Key: "{phone}", Limit: 3, Per: time.Minute, Wait: time.Second, Block: time.Hour, Burst: 2, Algorithm: TokenBucket}.prepare(":{phone}")
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Override{{Limit: 1}, {Burst: 9}, {Mode: ModeShadow}} {
		if err := l.Override("p.T.M", o); err != nil {
			t.Fatal(err)
		}
		changed, _ := l.overridden(rule)
		if changed == rule || changed.numbers.ID != rule.numbers.ID {
			t.Errorf("%+v: %+v has the identity %v, want %v", o, changed.Rule, changed.numbers.ID.Value(), rule.numbers.ID.Value())
		}
		if again, _ := l.overridden(rule); again != changed {
			t.Errorf("%+v: prepared for each call", o)
		}
	}
	if err := l.Override("p.T.M", Override{Per: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if changed, _ := l.overridden(rule); changed.numbers.ID.Value().Window != "bucket:1h:{phone}" {
		t.Errorf("identity %v", changed.numbers.ID.Value())
	}
}

func TestOverridesAllocateNothing(t *testing.T) {
	l := New(memory.New(nil, 1))
	rule, err := Rule{Name: "r", Limit: 1, Per: time.Minute}.prepare("")
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	for _, changed := range []bool{false, true} {
		if changed {
			if err := l.Override("r", Override{Limit: 5}); err != nil {
				t.Fatal(err)
			}
		}
		n := testing.AllocsPerRun(1000, func() {
			l.follow(ctx)
			if got, _ := l.overridden(rule); (got.Limit == 5) != changed {
				t.Errorf("limit %d", got.Limit)
			}
		})
		if n > 0 {
			t.Errorf("overridden %v: %v allocations a call", changed, n)
		}
	}
}

func BenchmarkOverridden(b *testing.B) {
	l := New(nil)
	rule, err := Rule{Name: "r", Limit: 1, Per: time.Minute}.prepare("")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if got, _ := l.overridden(rule); got != rule {
			b.Fatal("overridden")
		}
	}
}
