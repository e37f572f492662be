package ratelimit

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/memory"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// checkLine fails the test if the error is not one line of at most 1 kB.
func checkLine(t *testing.T, err error) {
	t.Helper()
	if text := printable.Line(err.Error()); len(text) > 1024 || strings.ContainsFunc(text, unicode.IsControl) {
		t.Errorf("an error of %d bytes: %q", len(text), text)
	}
}

// FuzzOverride parses arbitrary texts as settings in JSON. Each is either an error of one line, or an override that can be written and parsed
// again.
func FuzzOverride(f *testing.F) {
	f.Add("login", `{"rule":"login","key":"ann","limit":2,"per":"1m","burst":5,"mode":"shadow","until":"2026-11-22T18:00:00Z","by":"ann"}`)
	f.Add("a", `{"limit":0,"factor":2}`)
	f.Add("a\n", `{"limit":-1}`)
	f.Add("a", `{"burst":1e99,"unknown":"\u0000"}`)
	f.Add("a", `{"per":"1.5d"}{}`)
	f.Fuzz(func(t *testing.T, name, text string) {
		var v, again Setting
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			checkLine(t, err)
			return
		}
		written, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		err = json.Unmarshal(written, &again)
		if rewritten, _ := json.Marshal(again); err != nil || string(rewritten) != string(written) {
			t.Errorf("%s became %s and then %s, %v", text, written, rewritten, err)
		}
		if err := v.check(name); err != nil {
			checkLine(t, err)
			return
		}
		_ = v.apply(PerMinute(5)).check()
	})
}

// FuzzUsedRule parses arbitrary texts as rules in use. Each is either an error, or a rule that can be decided. Writing the rule and parsing it
// again gives the same.
func FuzzUsedRule(f *testing.F) {
	f.Add(`{"name":"login","key":"{user}","limit":5,"per":60000000000}`)
	f.Add(`{"name":"p.T.M#2","unnamed":true,"limit":0,"computed":true,"cron":"@daily","tz":"Asia/Tokyo"}`)
	f.Add(`{"name":"b","limit":5,"per":60000000000,"algorithm":3,"burst":7,"wait":1000000000,"queue":3,"block":3600000000000,"hash":1}`)
	f.Add(`{"name":"c","limit":5,"per":60000000000,"algorithm":5,"slices":7,"mode":1}`)
	f.Add(`{"name":"n","key":"{user}","limit":0,"computed":true,"per":60000000000,"block":60000000000,"pausable":true}`)
	f.Add(`{"name":"u","limit":-1,"per":60000000000}`)
	f.Add(`{"name":"w","limit":5,"per":60000000000,"algorithm":3,"warmup":1000000000}`)
	f.Fuzz(func(t *testing.T, text string) {
		used, err := parseUsed(text)
		if err != nil {
			checkLine(t, err)
			return
		}
		p, err := used.Rule.prepare("")
		if err != nil { // parseUsed does not check the cron expression
			return
		}
		p.Label = used.Name
		line := p.Declared.Text(p.Label)
		again, err := parseUsed(line)
		if err != nil || again.Rule != used.Rule {
			t.Errorf("%s became %s, which is %+v, %v", text, line, again, err)
		}
	})
}

// FuzzLimitOfACall makes calls that bring arbitrary limits, at arbitrary costs. Each is decided as under a rule that declares the limit. If no rule
// can declare it, that is the program's mistake. NoLimit admits every call.
func FuzzLimitOfACall(f *testing.F) {
	for _, limit := range []int64{0, 1, 10_000, 10_001, 100_001, 1_000_000_000, 1_000_000_001, NoLimit, -2, math.MinInt64, math.MaxInt64} {
		f.Add(limit, int64(10_001), uint8(limit))
	}
	f.Fuzz(func(t *testing.T, limit, cost int64, algorithm uint8) {
		computed := Rule{Name: "r", Key: "{team}", Computed: true, Per: time.Hour, Algorithm: Algorithm(algorithm) % numAlgorithms}
		if computed.Algorithm == Calendar {
			computed.Per, computed.Cron = 0, "@daily"
		}
		declared := computed
		declared.Computed, declared.Limit = false, limit
		call := func(rule Rule) error {
			rules, err := Prepare("p.T.M", rule)
			if err != nil {
				return err
			}
			c := methodOn(New(memory.New(nil, 10, 1<<20)), rules).Open(false)
			c.Add(&decide.Use{Key: "acme", Cost: cost, Limit: limit})
			_, err = c.Take(t.Context())
			return err
		}
		got, want := call(computed), call(declared)
		mistake, _ := errors.AsType[*KeyError](got)
		switch wrong, isWrong := errors.AsType[*RuleError](want); {
		case cost < 0:
			if mistake == nil || mistake.Internal {
				t.Errorf("a cost of %d: got %v", cost, got)
			}
		case limit == NoLimit || cost == 0:
			if got != nil {
				t.Errorf("without a limit or a cost: got %v", got)
			}
		case isWrong:
			if mistake == nil || !mistake.Internal {
				t.Errorf("got %v, and for a declared limit %v", got, wrong)
			}
		case fmt.Sprintf("%T", got) != fmt.Sprintf("%T", want):
			t.Errorf("got %v, and for a declared limit %v", got, want)
		}
	})
}

// FuzzCron prepares rules with arbitrary cron expressions and time zones. Each gives either an error of one line, or windows that end one
// after the other.
func FuzzCron(f *testing.F) {
	f.Add("0 0 0 * * *", "Asia/Shanghai")
	f.Add("@daily", "")
	f.Add("*/15 9-17 * jan-jun mon", "America/New_York")
	f.Add("0 0 31 2 *", "UTC")
	f.Add("TZ=UTC * * * * *", "Local")
	f.Add("@every 1h", "../etc/passwd")
	f.Add("? ? ? ? ?", "\x00")
	f.Add("0 0 29 2 ?", "Europe/Berlin")
	f.Fuzz(func(t *testing.T, cron, tz string) {
		rule := Rule{Name: "a", Limit: 1, Cron: cron, TZ: tz}
		if err := rule.Validate(); err != nil {
			checkLine(t, err)
			return
		}
		now := time.Date(2026, 3, 29, 0, 30, 0, 0, time.UTC)
		ends, err := rule.Boundaries(now, 3)
		if err != nil {
			t.Fatalf("%q in %q: %v", cron, tz, err)
		}
		for _, end := range ends {
			if !end.After(now) {
				t.Errorf("%q in %q: %s does not come after %s", cron, tz, end, now)
			}
			now = end
		}
	})
}
