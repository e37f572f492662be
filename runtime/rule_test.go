package ratelimit

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRuleValidate(t *testing.T) {
	minute := Rule{Limit: 1, Per: time.Minute}
	for _, test := range []struct {
		name     string
		rule     Rule
		argument string // "" for a valid rule
		reason   string // a part of it
	}{
		{"sliding", minute, "", ""},
		{"limit 0", Rule{Per: time.Minute}, "", ""},
		{"cron", Rule{Limit: 1, Cron: "0 0 0 * * *", TZ: "Asia/Shanghai"}, "", ""},
		{"cron of five fields", Rule{Limit: 1, Cron: "0 0 * * *"}, "", ""},
		{"cron with ?", Rule{Limit: 1, Cron: "0 0 0/1 * * ?"}, "", ""},
		{"daily", Rule{Limit: 1, Cron: "@daily"}, "", ""},
		{"calendar", Rule{Algorithm: Calendar, Limit: 1, Cron: "@daily"}, "", ""},
		{"every", Rule{Limit: 1, Every: "3mo", TZ: "Asia/Shanghai"}, "", ""},
		{"calendar of every", Rule{Algorithm: Calendar, Limit: 1, Every: "366d"}, "", ""},
		{"bucket", Rule{Algorithm: TokenBucket, Limit: 1, Per: time.Second, Burst: 9}, "", ""},

		{"neither", Rule{Limit: 1}, "per", "a rule needs a window: per=1m, cron="},
		{"both", Rule{Limit: 1, Per: time.Minute, Cron: "@daily"}, "cron", "found per as well"},
		{"per and every", Rule{Limit: 1, Per: time.Minute, Every: "1mo"}, "every", "found per as well"},
		{"cron and every", Rule{Limit: 1, Cron: "@daily", Every: "1mo"}, "every", "found cron as well"},
		{"bad every", Rule{Limit: 1, Every: "1h"}, "every", `found "1h"; expected 1d to 366d, 1w to 52w`},
		{"bucket with every", Rule{Algorithm: TokenBucket, Limit: 1, Every: "1d"}, "algorithm", "token-bucket with every"},
		{"zone of every", Rule{Limit: 1, Every: "1d", TZ: "Mars/Base"}, "tz", `unknown time zone "Mars/Base"`},
		{"every that is paused", Rule{Limit: 1, Every: "1d", Pausable: true}, "pause", "does not go with a calendar window"},
		{"negative limit", Rule{Limit: -2, Per: time.Minute}, "limit", "found -2; expected 0 to 1000000000"},
		{"no limit", Rule{Limit: NoLimit, Per: time.Minute}, "limit", "remove the rule, or use mode=shadow"},
		{"large limit", Rule{Limit: 1_000_000_001, Per: time.Minute}, "limit", "expected 0 to 1000000000 for a sliding-window"},
		{"amounts of members", Rule{Limit: 5, Per: time.Minute, Distinct: "{who}", Amounts: true}, "distinct", "each member counts once"},
		{"amounts of a bucket", Rule{Limit: 5, Per: time.Minute, Algorithm: TokenBucket, Amounts: true}, "algorithm", "goes with sliding-window"},
		{"negative per", Rule{Limit: 1, Per: -1}, "per", "found -1ns"},
		{"nanoseconds", Rule{Limit: 1, Per: time.Millisecond + 1}, "per", "whole microseconds"},
		{"long per", Rule{Limit: 1, Per: maxPer + time.Microsecond}, "per", "up to 3660d"},
		{"year", Rule{Limit: 1, Cron: "0 0 0 1 1 ? 2030"}, "cron", "found 7 fields"},
		{"bad cron", Rule{Limit: 1, Cron: "0 0 25 * * *"}, "cron", "above maximum"},
		{"cron that never comes", Rule{Limit: 1, Cron: "0 0 30 2 *"}, "cron", "never comes"},
		{"every", Rule{Limit: 1, Cron: "@every 1h"}, "cron", "write per="},
		{"zone in cron", Rule{Limit: 1, Cron: "TZ=UTC 0 0 * * *"}, "cron", "write it as tz="},
		{"zone", Rule{Limit: 1, Cron: "@daily", TZ: "Mars/Base"}, "tz", `unknown time zone "Mars/Base"`},
		{"local zone", Rule{Limit: 1, Cron: "@daily", TZ: "Local"}, "tz", "unknown time zone"},
		{"zone without cron", Rule{Limit: 1, Per: time.Minute, TZ: "UTC"}, "tz", "without cron"},
		{"calendar without cron", Rule{Algorithm: Calendar, Limit: 1, Per: time.Minute}, "algorithm", "needs cron"},
		{"bucket with cron", Rule{Algorithm: TokenBucket, Limit: 1, Cron: "@daily"}, "algorithm", "token-bucket with cron"},
		{"unknown algorithm", Rule{Algorithm: 99, Limit: 1, Per: time.Minute}, "algorithm", "found Algorithm(99)"},
		{"burst without bucket", Rule{Limit: 1, Per: time.Minute, Burst: 2}, "burst", "found a sliding-window"},
		{"negative burst", Rule{Algorithm: TokenBucket, Limit: 1, Per: time.Minute, Burst: -2}, "burst", "found -2"},
		{"endless burst", Rule{Algorithm: TokenBucket, Limit: 1, Per: maxPer, Burst: 11}, "burst", "over a hundred years"},
		{"brace", Rule{Name: "a{b", Limit: 1, Per: time.Minute}, "name", `found '{'`},
		{"line break", Rule{Name: "a\nb", Limit: 1, Per: time.Minute}, "name", `found '\n'`},
		{"no text", Rule{Name: "a\xff", Limit: 1, Per: time.Minute}, "name", `found "a\xff", which is no UTF-8`},
		{"long name", Rule{Name: strings.Repeat("a", 257), Limit: 1, Per: time.Minute}, "name", "found 257 bytes"},

		{"cron of words", Rule{Limit: 1, Cron: "0 noon * * *"}, "cron", `found "noon"; expected numbers, *, or the first three letters`},
		{"cron of two fields", Rule{Limit: 1, Cron: "0 0"}, "cron", "found 2 fields; expected 5, or 6 with seconds"},
		{"unknown mode", Rule{Limit: 1, Per: time.Minute, Mode: 9}, "mode", "found 9"},
		{"unknown scope", Rule{Limit: 1, Per: time.Minute, Scope: 9}, "scope", "found 9; expected fleet or instance"},
		{"unknown refund", Rule{Limit: 1, Per: time.Minute, Refund: 9}, "refund", "found 9; expected never or error"},
		{"unknown hash", Rule{Limit: 1, Per: time.Minute, Hash: 9}, "hash", "found 9; expected true or false"},
		{"unknown policy", Rule{Limit: 1, Per: time.Minute, OnError: 9}, "on-error", "found 9; expected deny, allow or local"},
		{"unknown policy of a share", Rule{Limit: 1, Per: time.Minute, OnError: FailLocalShare(3) + 4}, "on-error", "found 775"},
		{"policy of a share", Rule{Limit: 1, Per: time.Minute, OnError: FailLocalShare(3)}, "", ""},
		{"short warmup", Rule{Algorithm: TokenBucket, Limit: 1, Per: time.Minute, Warmup: 1}, "warmup", "found 1ns; expected 1us to"},
		{"negative warmup", Rule{Algorithm: TokenBucket, Limit: 1, Per: time.Minute, Warmup: -time.Second}, "warmup", "found -1s"},
		{
			"warmup with a burst", Rule{Algorithm: TokenBucket, Limit: 1, Per: time.Minute, Warmup: time.Second, Burst: 2},
			"burst", "found warmup as well",
		},
		{
			"negative queue", Rule{Algorithm: LeakyBucket, Limit: 1, Per: time.Minute, Wait: time.Second, Queue: -1},
			"queue", "found -1; expected 1 to",
		},
		{"negative lease", Rule{Limit: 1, Per: time.Minute, Lease: -1}, "lease", "found -1ns; expected whole microseconds"},
		{"lease that waits", Rule{Limit: 1, Per: time.Minute, Lease: time.Second, Wait: time.Second}, "lease", "found wait as well"},
		{"lease of members", Rule{Limit: 1, Per: time.Minute, Lease: time.Second, Distinct: "{who}"}, "lease", "found distinct as well"},
		{"lease that blocks", Rule{Limit: 1, Per: time.Minute, Lease: time.Second, Block: time.Second}, "lease", "found block as well"},
		{"lease of a shadow", Rule{Limit: 1, Per: time.Minute, Lease: time.Second, Mode: ModeShadow}, "lease", "found mode=shadow"},
		{"lease of an instance", Rule{Limit: 1, Per: time.Minute, Lease: time.Second, Scope: ScopeInstance}, "lease", "found scope=instance"},

		{"warmup without a bucket", Rule{Limit: 1, Per: time.Minute, Warmup: time.Second}, "warmup", "expected a token-bucket"},
		{"prepay without a bucket", Rule{Limit: 1, Per: time.Minute, Prepay: true}, "prepay", "expected a token-bucket"},
		{"queue without wait", Rule{Algorithm: LeakyBucket, Limit: 1, Per: time.Minute, Queue: 5}, "queue", "needs wait="},
		{"queue of debtors", Rule{Algorithm: TokenBucket, Limit: 1, Per: time.Minute, Wait: time.Second, Prepay: true, Queue: 5}, "queue", "found prepay as well"},
		{"queue that warms up", Rule{Algorithm: TokenBucket, Limit: 1, Per: time.Minute, Wait: time.Second, Warmup: time.Second, Queue: 5}, "queue", "found warmup as well"},
		{"queue of a bucket", Rule{Algorithm: TokenBucket, Limit: 1, Per: time.Minute, Wait: time.Second, Queue: 5}, "", ""},
		{"queue of a window", Rule{Limit: 1, Per: time.Minute, Queue: 5}, "queue", "found a sliding-window"},
		{"long block", Rule{Limit: 1, Per: time.Minute, Block: maxBlock + time.Second}, "block", "up to 30d"},
		{"many slices", Rule{Algorithm: SlidingCounter, Limit: 1, Per: time.Minute, Slices: 10_001}, "slices", "found 10001"},
		{"slices of a bucket", Rule{Algorithm: TokenBucket, Limit: 1, Per: time.Minute, Slices: 6}, "slices", "expected a sliding-counter"},
		{"members that wait", Rule{Limit: 1, Per: time.Minute, Distinct: "{who}", Wait: time.Second}, "wait", "found distinct as well"},
		{"trigger that waits", Rule{Limit: 1, Per: time.Minute, Mode: ModeTrigger, Wait: time.Second}, "wait", "found mode=trigger"},
		{"blocks that do not grow", Rule{Limit: 1, Per: time.Minute, Block: time.Hour, BlockMax: time.Hour}, "block", "found 1h..1h"},
		{"longest block without a block", Rule{Limit: 1, Per: time.Minute, BlockMax: time.Hour}, "block", "expected a longer second"},
		{"shadow that blocks", Rule{Limit: 1, Per: time.Minute, Mode: ModeShadow, Block: time.Second}, "block", "found mode=shadow"},
		{"distinct bucket", Rule{Algorithm: TokenBucket, Limit: 1, Per: time.Minute, Distinct: "{id}"}, "distinct", "found a token-bucket"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.rule.Validate()
			wrong, _ := errors.AsType[*RuleError](err)
			switch {
			case test.argument == "" && err != nil:
				t.Error(err)
			case test.argument != "" && (wrong == nil || wrong.Argument != test.argument || !strings.Contains(wrong.Reason, test.reason)):
				t.Errorf("got %v, want an error of %s: %s", err, test.argument, test.reason)
			}
		})
	}
}

func TestRuleWindow(t *testing.T) {
	for want, rule := range map[string]Rule{
		"1m":                              {Per: time.Minute},
		"1d":                              {Per: 24 * time.Hour},
		"7d12h":                           {Per: 180 * time.Hour},
		"1h30m":                           {Per: 90 * time.Minute},
		"1h0m30s":                         {Per: time.Hour + 30*time.Second},
		"1.5s":                            {Per: 1500 * time.Millisecond},
		"fixed:1m":                        {Algorithm: FixedWindow, Per: time.Minute},
		"bucket:1s":                       {Algorithm: TokenBucket, Per: time.Second},
		"bucket:1s:5s":                    {Algorithm: TokenBucket, Per: time.Second, Warmup: 5 * time.Second},
		"leaky:1s":                        {Algorithm: LeakyBucket, Per: time.Second},
		"counter:1m:60":                   {Algorithm: SlidingCounter, Per: time.Minute},
		"distinct:1d":                     {Per: 24 * time.Hour, Distinct: "{id}"},
		"cron:0 0 0 * * *":                {Cron: "0  0 0 * * *"},
		"cron:0 0 0 * * *:Asia/Shanghai":  {Cron: "0 0 0 * * *", TZ: "Asia/Shanghai"},
		"distinct:cron:@daily:Asia/Tokyo": {Cron: "@daily", TZ: "Asia/Tokyo", Distinct: "{id}"},
	} {
		if got := rule.Window(); got != want {
			t.Errorf("%+v: Window() = %q, want %q", rule, got, want)
		}
	}
}

// Problems returns all errors together. Validate returns only the first.
func TestProblems(t *testing.T) {
	r := Rule{Name: "a b", Limit: -1, Cron: "99 * * * *", Burst: 3, Wait: -1, Block: -1}
	var arguments []string
	for _, problem := range r.Problems() {
		arguments = append(arguments, problem.Argument)
	}
	if want := []string{"name", "limit", "burst", "wait", "block", "cron"}; !slices.Equal(arguments, want) {
		t.Errorf("got %q, want %q", arguments, want)
	}
	if p := (Rule{Algorithm: 99, Limit: 1, Per: time.Minute, Mode: ModeTrigger, Lease: time.Second}).Problems(); len(p) == 0 || p[0].Argument != "algorithm" {
		t.Errorf("a rule of an unknown algorithm has problems %v", p)
	}
	if p := (Rule{Limit: 1, Per: time.Minute}).Problems(); p != nil {
		t.Errorf("a rule that is valid has problems %v", p)
	}
}

// Errors name a rule of each algorithm.
func TestEveryAlgorithmHasWords(t *testing.T) {
	for _, a := range Algorithms() {
		if wordsOf[a.kind()].noun == "" {
			t.Errorf("wordsOf lacks a noun for %s", a)
		}
	}
}
