package simulate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// periodic are the algorithms with periods.
var periodic = slices.DeleteFunc(ratelimit.Algorithms(), func(a ratelimit.Algorithm) bool { return a == ratelimit.Calendar })

func drawRule(t *rapid.T) Rule {
	r := ratelimit.Rule{
		Key:       rapid.SampledFrom([]string{"", "{user}"}).Draw(t, "key"),
		Limit:     rapid.Int64Range(0, 20).Draw(t, "limit"),
		Per:       rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second}).Draw(t, "per"),
		Algorithm: rapid.SampledFrom(periodic).Draw(t, "algorithm"),
		Mode:      rapid.SampledFrom([]ratelimit.Mode{ratelimit.ModeEnforce, ratelimit.ModeShadow}).Draw(t, "mode"),
	}
	if r.Algorithm == ratelimit.Concurrency {
		r.Per = 10 * time.Second
	}
	r.Scope = rapid.SampledFrom([]ratelimit.Scope{ratelimit.ScopeFleet, ratelimit.ScopeInstance}).Draw(t, "scope")
	if r.Burst = rapid.Int64Range(0, 30).Draw(t, "burst"); r.Validate() != nil {
		r.Burst = 0
	}
	if r.Wait = rapid.SampledFrom([]time.Duration{0, 0, time.Second, 5 * time.Second}).Draw(t, "wait"); r.Validate() != nil {
		r.Wait = 0
	}
	return Rule{Rule: r, Text: fmt.Sprint(r), Cost: rapid.Int64Range(0, 2).Draw(t, "cost")}
}

// Every part of a result counts each call once, as admitted or refused.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, l := rapid.SliceOfN(rapid.Custom(drawRule), 1, 4).Draw(t, "rules"), drawLoad(t)
		r, err := Run(t.Context(), rules, l)
		if err != nil {
			t.Fatal(err)
		}
		n := int64(len(l.Calls))
		if sum(r.Timeline.Admitted) != r.Admitted || sum(r.Timeline.Refused) != r.Refused || r.Admitted+r.Refused != n {
			t.Fatalf("of %d calls, %d are admitted and %d refused; over time, %v and %v", n, r.Admitted, r.Refused, r.Timeline.Admitted, r.Timeline.Refused)
		}
		if sum(r.Timeline.Waited) != r.Waited || r.Waited > r.Admitted || (r.Waited > 0) != (r.LongestWait > 0) || r.LongestWait > Duration(5*time.Second) {
			t.Fatalf("%d waited, up to %s; over time, %v", r.Waited, r.LongestWait, r.Timeline.Waited)
		}
		enforced := int64(0)
		for i, rule := range r.Rules {
			refused := int64(0)
			for _, k := range rule.Keys {
				if refused += k.Refused; k.Refused < 1 || k.Refused > k.Calls {
					t.Fatalf("%s: %+v", rule.Rule.Text, k)
				}
			}
			if rules[i].Key != "" && refused != rule.All.Refused || rule.All.Calls != n {
				t.Fatalf("%s: %+v, but by key %d are refused", rule.Rule.Text, rule.All, refused)
			}
			if rules[i].Mode == ratelimit.ModeEnforce {
				enforced += rule.All.Refused
			}
			if left := r.Timeline.Left[i]; slices.Min(left) < 0 || slices.Max(left) > rules[i].capacity() {
				t.Fatalf("%s: %v are left", rule.Rule.Text, left)
			}
		}
		if enforced < r.Refused {
			t.Fatalf("the rules refused %d calls, but %d are refused", enforced, r.Refused)
		}
	})
}

func sum(all []int64) (total int64) {
	for _, n := range all {
		total += n
	}
	return total
}

// A sliding window refuses the same calls as a list of the admitted times.
func TestLikeAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit, per, l := rapid.IntRange(1, 9).Draw(t, "limit"), 2*time.Second, drawLoad(t)
		rule := Rule{Rule: ratelimit.Rule{Key: "{user}", Limit: int64(limit), Per: per}}
		r, err := Run(t.Context(), []Rule{rule}, l)
		if err != nil {
			t.Fatal(err)
		}
		admitted, want := map[int][]time.Duration{}, map[string]int64{}
		for _, c := range l.Calls {
			admitted[c.Key] = slices.DeleteFunc(admitted[c.Key], func(at time.Duration) bool { return at <= c.After-per })
			if len(admitted[c.Key]) < limit {
				admitted[c.Key] = append(admitted[c.Key], c.After)
			} else {
				want[l.Keys[c.Key]]++
			}
		}
		for _, k := range r.Rules[0].Keys {
			if want[k.Key] != k.Refused || k.LongestDelay <= 0 || k.LongestDelay > Duration(per) {
				t.Fatalf("%+v; expected %d", k, want[k.Key])
			}
			delete(want, k.Key)
		}
		if len(want) > 0 {
			t.Fatalf("no refusals of %v", want)
		}
	})
}

// Calls of a leaky bucket wait in line: each has its turn one gap after the previous call, or is refused if that is too late.
func TestLikeALine(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const gap = 100 * time.Millisecond
		l, wait := drawLoad(t), time.Duration(rapid.IntRange(1, 30).Draw(t, "wait"))*gap/2
		r, err := Run(t.Context(), []Rule{{Rule: ratelimit.Rule{Limit: 10, Per: time.Second, Algorithm: ratelimit.LeakyBucket, Wait: wait}}}, l)
		if err != nil {
			t.Fatal(err)
		}
		want, next := Result{}, time.Duration(0)
		for _, c := range l.Calls {
			late := max(0, next-c.After)
			if late > wait {
				want.Refused++
				continue
			}
			want.Admitted, want.LongestWait, next = want.Admitted+1, max(want.LongestWait, Duration(late)), c.After+late+gap
			if late > 0 {
				want.Waited++
			}
		}
		if r.Admitted != want.Admitted || r.Waited != want.Waited || r.Refused != want.Refused || r.LongestWait != want.LongestWait {
			t.Fatalf("%d admitted, %d after up to %s, %d refused; expected %+v", r.Admitted, r.Waited, r.LongestWait, r.Refused, want)
		}
	})
}

// Calls under rules that cannot keep a common place sleep and ask again, in virtual time.
func TestAskAgain(t *testing.T) {
	rules := []Rule{
		{Rule: ratelimit.Rule{Limit: 10, Per: time.Second, Algorithm: ratelimit.TokenBucket, Wait: time.Hour}},
		{Rule: ratelimit.Rule{Limit: 2, Per: time.Minute, Wait: time.Hour, Scope: ratelimit.ScopeInstance}},
	}
	r, err := Run(t.Context(), rules, calls(t, "0,a\n1,a\n2,a\n3,a\n4,a\n"))
	if err != nil || r.Admitted != 5 || r.Waited != 3 || r.LongestWait != Duration(116*time.Second) {
		t.Errorf("%+v, %v", r, err)
	}
}

// Of equal sleeping calls, only the first asks again. That does not change the result: it is the same with another rule that admits
// everything but makes all calls different.
func TestEqualCallsWaitTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := func(name string, algorithms ...ratelimit.Algorithm) Rule {
			return Rule{Rule: ratelimit.Rule{
				Limit: rapid.Int64Range(2, 9).Draw(t, name+" limit"), Per: time.Duration(rapid.IntRange(1, 20).Draw(t, name+" per")) * time.Second,
				Algorithm: rapid.SampledFrom(algorithms).Draw(t, name+" algorithm"),
				Wait:      time.Duration(rapid.IntRange(0, 60).Draw(t, name+" wait")) * time.Second,
			}}
		}
		rules := []Rule{
			rule("one", ratelimit.TokenBucket, ratelimit.LeakyBucket),
			rule("other", ratelimit.SlidingWindow, ratelimit.FixedWindow, ratelimit.TokenBucket),
		}
		var text strings.Builder
		at, cost := 0, rapid.IntRange(1, 2).Draw(t, "cost")
		for i := range rapid.IntRange(1, 60).Draw(t, "calls") {
			at += rapid.IntRange(0, 3000).Draw(t, "later") // milliseconds
			fmt.Fprintf(&text, "%d.%03d,%d,%d\n", at/1000, at%1000, i, cost)
		}
		load, err := ReadCSV(strings.NewReader(text.String()), Span{})
		if err != nil {
			t.Fatal(err)
		}
		together, err := Run(t.Context(), rules, load)
		if err != nil {
			t.Fatal(err)
		}
		apart, err := Run(t.Context(), append(rules, Rule{Rule: ratelimit.Rule{Key: "{user}", Limit: 1000, Per: time.Second}}), load)
		if err != nil {
			t.Fatal(err)
		}
		apart.Rules, apart.Timeline.Left = apart.Rules[:2], apart.Timeline.Left[:2]
		if !reflect.DeepEqual(together, apart) {
			t.Fatalf("%+v\nbut apart %+v\n%s", together.Rules, apart.Rules, text.String())
		}
	})
}

func TestDistinct(t *testing.T) {
	rule := Rule{Rule: ratelimit.Rule{Key: "{user}", Distinct: "{to}", Limit: 2, Per: time.Minute}, Text: "two", Ignored: []string{"when="}}
	r, err := Run(t.Context(), []Rule{rule}, calls(t, "0,a,,x\n1,a,,y\n2,a,,x\n3,a,,z\n4,b,,z\n"))
	if err != nil || r.Refused != 1 || r.Rules[0].Keys[0].Key != "a" {
		t.Errorf("%+v, %v", r, err)
	}
	both, err := Run(t.Context(), []Rule{rule, {Rule: ratelimit.PerMinute(9)}}, calls(t, "0,a,4,x\n1,a,5,y\n2,a,1,x\n"))
	if err != nil || both.Rules[0].All.Refused != 0 || both.Rules[1].All.Refused != 1 { // a member costs one permit
		t.Errorf("with costs: %+v, %v", both, err)
	}
	var out strings.Builder
	if err := r.PrintTable(&out); err != nil || !strings.HasSuffix(out.String(), "\n\nnot simulated: when= of two\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
	for text, want := range map[string]string{
		"0,a\n":           "line 1: the member is missing",
		"0,a,,x\n\n1,a\n": `line 3: the member is missing; the rule "two" needs one in each line`,
		"0,a,,x\n1\n2\n":  "line 2: the key is missing",
	} {
		if _, err := Run(t.Context(), []Rule{rule}, calls(t, text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got error %v, want %s", text, err, want)
		}
	}
}

// The windows of a key count from its anchor in the load, or else from its first call. Without a key, they count from the first call of all.
func TestAnchors(t *testing.T) {
	daily := Rule{Rule: ratelimit.Rule{Key: "{user}", Limit: 1, Every: "1d"}, Text: "one", Ignored: []string{"anchor="}}
	all := Rule{Rule: ratelimit.Rule{Limit: 1, Every: "1d"}, Text: "one"}
	for text, want := range map[string]struct {
		rule    Rule
		refused int64
		ignored []string
	}{
		"0,a,,,43200\n43199,a,,,43200\n43200,a,,,43200\n":        {daily, 1, nil},
		"0,a,,,-43200\n43199,a,,,-43200\n43200,a,,,-43200\n":     {daily, 1, nil},
		"0,a,,,2200-01-01T12:00:00Z\n43199,a\n43200,a\n":         {daily, 1, nil},
		"10,a\n20,b\n86409,a\n86410,a\n86419,b\n86420,b\n":       {daily, 2, []string{"anchor="}},
		"10,a\n20,b\n86409,b\n86410,b\n86420,a\n":                {all, 3, nil},
		"10,a,,,10\n20,b,,,20\n86409,a,,,10\n86420,b,,,20\n":     {daily, 1, nil},
		"10,a,,,10\n86409,a,,,80000\n86410,a,,,80000\n86411,a\n": {daily, 2, nil},
	} {
		r, err := Run(t.Context(), []Rule{want.rule}, calls(t, text))
		if err != nil || r.Refused != want.refused || !slices.Equal(r.Rules[0].Ignored, want.ignored) {
			t.Errorf("%q: %+v, error %v; want %+v", text, r, err, want)
		}
	}
}

// A rule whose cost is an expression has the costs of a csv. Then each line needs one. Without costs, each call takes one permit.
func TestCostsOfALoad(t *testing.T) {
	rule := Rule{Rule: ratelimit.Rule{Limit: 5, Per: time.Minute}, Text: "five", Ignored: []string{"cost=", "settle="}}
	for text, want := range map[string]struct {
		refused int64
		ignored []string
	}{
		"0,,3\n1,,3\n2,,2\n": {1, []string{"settle="}},
		"0\n1\n2\n":          {0, rule.Ignored},
	} {
		r, err := Run(t.Context(), []Rule{rule}, calls(t, text))
		if err != nil || r.Refused != want.refused || !slices.Equal(r.Rules[0].Ignored, want.ignored) {
			t.Errorf("%q: %+v, error %v; want %+v", text, r, err, want)
		}
	}
	_, err := Run(t.Context(), []Rule{rule}, calls(t, "0,,3\n1,a\n"))
	if err == nil || !strings.Contains(err.Error(), `line 2: the cost is missing; the rule "five" needs one in each line`) {
		t.Error(err)
	}
	if _, err := Run(t.Context(), []Rule{{Rule: rule.Rule}}, calls(t, "0,,3\n1,a\n")); err != nil {
		t.Error(err)
	}
}

func calls(t *testing.T, text string) *Load {
	t.Helper()
	l, err := ReadCSV(strings.NewReader(text), Span{})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Rules count separately even if they have the same name and window. The cost comes from the rule, or else from the load.
func TestCosts(t *testing.T) {
	same := ratelimit.Rule{Name: "same", Limit: 4, Per: time.Minute, Mode: ratelimit.ModeShadow}
	r, err := Run(t.Context(), []Rule{{Rule: same}, {Rule: same, Cost: 1}}, calls(t, "0,a,3\n1,a,3\n2,a\n3,a\n"))
	if err != nil {
		t.Fatal(err)
	}
	if one, other := r.Rules[0].All.Refused, r.Rules[1].All.Refused; one != 2 || other != 0 || r.Refused != 0 {
		t.Errorf("%d and %d would be refused, and %d are", one, other, r.Refused)
	}
}

// Programs parse durations by time.ParseDuration, which does not know days.
func TestDurationInJSON(t *testing.T) {
	for _, d := range []time.Duration{0, time.Microsecond, 36 * time.Hour, 14 * 24 * time.Hour} {
		var text string
		b, err := json.Marshal(Duration(d))
		if err = errors.Join(err, json.Unmarshal(b, &text)); err != nil {
			t.Fatal(err)
		}
		if got, err := time.ParseDuration(text); got != d || err != nil {
			t.Errorf("%v is %s: %v", d, b, err)
		}
	}
}

// A call that a rule can never admit counts as refused by that rule.
func TestNever(t *testing.T) {
	rules := []Rule{{Rule: ratelimit.Rule{Limit: 10, Per: time.Second}}, {Rule: ratelimit.Rule{Limit: 2, Per: time.Second}}}
	r, err := Run(t.Context(), rules, calls(t, "0,a,3\n1,a,2\n"))
	if err != nil {
		t.Fatal(err)
	}
	if r.Admitted != 1 || r.Refused != 1 || r.Rules[0].All.Refused != 0 || r.Rules[1].All != (KeyResult{Calls: 2, Refused: 1, Never: true}) {
		t.Errorf("%+v", r)
	}
	var out strings.Builder
	if err := r.PrintTable(&out); err != nil || !strings.Contains(out.String(), "never admitted") {
		t.Errorf("%v\n%s", err, out.String())
	}
}

// The remaining budget is right for large costs.
func TestLeftOfManyPermits(t *testing.T) {
	rule := Rule{Rule: ratelimit.Rule{Limit: 1_000_000, Per: time.Minute}, Text: "many"}
	r, err := Run(t.Context(), []Rule{rule}, calls(t, "0,a,9999\n1,a,5000\n2,a\n"))
	if err != nil {
		t.Fatal(err)
	}
	left := r.Timeline.Left[0]
	if first, next, last := left[0], left[1], left[len(left)-1]; first != 1_000_000 || next != 990_001 || last != 985_001 {
		t.Errorf("left are %d, then %d, and %d in the end", first, next, last)
	}
}

// The budget that is left is what a call could take. It is zero while the key is blocked. In shadow or trigger mode it is the same as in enforce
// mode.
func TestLeft(t *testing.T) {
	load := calls(t, "0,a\n1,a\n2,a\n2,a\n3,a\n30,a\n40,a\n")
	for want, rule := range map[string]ratelimit.Rule{
		"4 3 2 0 0 4 4 4": {Limit: 4, Per: 5 * time.Second},
		"1 0 0 0 0 1 1 1": {Limit: 1, Per: 2 * time.Second, Block: 9 * time.Second},
		"4 3 2 0 0 4 4 3": {Limit: 4, Per: 20 * time.Second, Mode: ratelimit.ModeTrigger},
		"3 2 1 0 0 3 3 2": {Limit: 3, Per: 20 * time.Second, Mode: ratelimit.ModeShadow},
		"1 0 0 1 0 1 1 1": {Limit: 1, Per: 3 * time.Second, Algorithm: ratelimit.LeakyBucket},
		"0 0 0 0 0 0 0 0": {Per: time.Second},
	} {
		r, err := Run(t.Context(), []Rule{{Rule: rule}}, load)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, second := range []time.Duration{0, 1, 2, 3, 4, 25, 30, 35} { // measured before the calls of the same time
			left = append(left, fmt.Sprint(r.Timeline.Left[0][second*time.Second/time.Duration(r.Timeline.LeftStep)]))
		}
		if got := strings.Join(left, " "); got != want {
			t.Errorf("%+v: left are %s; expected %s", rule, got, want)
		}
	}
}

// A limit of 0 refuses every call, for ever.
func TestLimitZero(t *testing.T) {
	r, err := Run(t.Context(), []Rule{{Rule: ratelimit.PerSecond(0)}}, calls(t, "0,a\n9,a\n"))
	if err != nil || r.Refused != 2 || r.Rules[0].All.delay() != "never admitted" {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, []Rule{{Rule: ratelimit.PerSecond(1)}}, calls(t, "0,a\n")); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// countdown is a context that ends after a number of calls of Value. Each decision makes such calls.
type countdown struct {
	context.Context
	end  func()
	left int
}

func (c *countdown) Value(key any) any {
	if c.left--; c.left == 0 {
		c.end()
	}
	return c.Context.Value(key)
}

// A run ends when it is interrupted at any time, and so do the sleeping calls.
func TestInterruptedWhileWaiting(t *testing.T) {
	rules := []Rule{
		{Rule: ratelimit.Rule{Limit: 10, Per: time.Second, Algorithm: ratelimit.TokenBucket, Wait: time.Hour}},
		{Rule: ratelimit.Rule{Limit: 1, Per: time.Minute, Wait: time.Hour, Scope: ratelimit.ScopeInstance}},
	}
	load := func() *Load { return calls(t, "0,a\n1,a\n2,a\n3,a\n4,a\n") }
	whole := &countdown{t.Context(), nil, math.MaxInt}
	if _, err := Run(whole, rules, load()); err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	for left := 1; left < math.MaxInt-whole.left; left += 7 {
		ctx, end := context.WithCancel(t.Context())
		if _, err := Run(&countdown{ctx, end, left}, rules, load()); !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted at its value %d, the run ends with error %v", left, err)
		}
		end()
	}
	left := func() int { return runtime.NumGoroutine() - before }
	for deadline := time.Now().Add(time.Minute); left() > 10 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond) // goroutines may end late on a busy machine
	}
	if left() > 10 {
		t.Errorf("%d calls sleep for ever", left())
	}
}

func TestMissingKey(t *testing.T) {
	rule := Rule{Rule: ratelimit.Rule{Key: "{user}", Limit: 1, Per: time.Second}, Text: "limit=1"}
	const want = `line 2: the key is missing; the rule "limit=1" needs one in each line`
	if _, err := Run(t.Context(), []Rule{rule}, calls(t, "0,a\n1\n")); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v; expected %s", err, want)
	}
}

func TestBadRules(t *testing.T) {
	one, few := Rule{Rule: ratelimit.PerMinute(1)}, calls(t, "0,a\n")
	many := &Load{Length: time.Minute, Keys: make([]string, 40_000)}
	for _, c := range []struct {
		rules []Rule
		load  *Load
		want  string
	}{
		{[]Rule{one, {Rule: ratelimit.PerMinute(-1), Text: "limit=-1 per=1m"}}, few, `the rule "limit=-1 per=1m": limit: found -1`},
		{[]Rule{one, {Rule: ratelimit.Rule{Key: "{user}", Limit: 1, Per: time.Minute}, Text: "each"}}, calls(t, "0,"+strings.Repeat("a", 70_000)+"\n"),
			`the rule "each": the key has 70000 bytes; expected at most 65536`},
		{slices.Repeat([]Rule{one}, 256), few, "found 256 rules; a call has at most 255"},
		{slices.Repeat([]Rule{one}, 255), many, "255 rules and 40000 keys make 10200000 counts; at most "},
	} {
		if _, err := Run(t.Context(), c.rules, c.load); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%v; expected %s", err, c.want)
		}
	}
	if result, err := Run(t.Context(), slices.Repeat([]Rule{one}, 255), few); err != nil || result.Admitted != 1 {
		t.Errorf("under 255 rules: %v, %v", result, err)
	}
}

func TestTable(t *testing.T) {
	rules := []Rule{
		{Rule: ratelimit.Rule{Key: "{user}", Limit: 1, Per: time.Minute}, Text: "limit=1 per=1m key={user}"},
		{Rule: ratelimit.Rule{Limit: 100, Per: time.Minute}, Text: "limit=100 per=1m"},
	}
	var text strings.Builder
	for i := range 7 {
		fmt.Fprintf(&text, "%d,user-%d\n%[1]d.5,user-%[2]d\n", i, i)
	}
	text.WriteString("10,user-3\n11,\"\x1b\n\"\n11,\"\x1b\n\"\n")
	r, err := Run(t.Context(), rules, calls(t, text.String()))
	if err != nil {
		t.Fatal(err)
	}
	const want = `
 for 11s: 17 calls, 8 keys; 8 admitted, 9 refused (52.9%)

RULE                       KEY     CALLS  REFUSED    LONGEST RETRY DELAY
limit=1 per=1m key={user}  all     17     9 (52.9%)  1m
                           user-3  3      2 (66.7%)  59.5s
                           user-0  2      1 (50.0%)  59.5s
                           user-1  2      1 (50.0%)  59.5s
                           user-2  2      1 (50.0%)  59.5s
                           user-4  2      1 (50.0%)  59.5s
                           3 more  6      3 (50.0%)  1m
limit=100 per=1m           all     17     0          -
`
	var out strings.Builder
	if err := r.PrintTable(&out); err != nil || "\n"+out.String() != want {
		t.Errorf("%v\n%s", err, out.String())
	}
	fields, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(fields), `"keys":[{"key":"user-3","calls":3,"refused":2,"longestRetryDelay":"59.5s"},`) || !strings.Contains(string(fields), `"\u001b\n"`) {
		t.Errorf("%v\n%s", err, fields)
	}
}

// BenchmarkRun decides a million calls of a thousand keys under two rules.
func BenchmarkRun(b *testing.B) {
	rules := []Rule{
		{Rule: ratelimit.Rule{Key: "{user}", Limit: 50, Per: time.Minute}},
		{Rule: ratelimit.Rule{Limit: 900, Per: time.Second, Algorithm: ratelimit.TokenBucket}},
	}
	for b.Loop() {
		l, err := NewLoad("poisson:1000/s", Span{Length: 1000 * time.Second, Keys: 1000})
		if err != nil {
			b.Fatal(err)
		}
		r, err := Run(b.Context(), rules, l)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(r.Admitted+r.Refused), "calls/op")
		if len(Draw("", r)) == 0 {
			b.Fatal("no picture")
		}
	}
}

// Of calls that run for two seconds, one starts every second: two at a time are never refused, and one at a time refuses every other one. Of those
// that may wait, as many pass as one at a time can.
func TestCallsThatRun(t *testing.T) {
	for text, want := range map[string]Result{
		"two at a time": {Admitted: 60}, "one at a time": {Admitted: 30, Refused: 30}, "one waits": {Admitted: 31, Refused: 29, Waited: 30},
	} {
		load, err := NewLoad("constant:1/s", Span{Length: time.Minute, Runs: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		rule := Rule{Rule: ratelimit.Rule{Algorithm: ratelimit.Concurrency, Limit: 1}, Text: text}
		switch text {
		case "two at a time":
			rule.Limit = 2
		case "one waits":
			rule.Wait = 1500 * time.Millisecond
		}
		got, err := Run(t.Context(), []Rule{rule}, load)
		if err != nil || got.Admitted != want.Admitted || got.Refused != want.Refused || got.Waited != want.Waited {
			t.Errorf("%s: admitted %d, refused %d, waited %d, error %v", text, got.Admitted, got.Refused, got.Waited, err)
		}
	}
}
