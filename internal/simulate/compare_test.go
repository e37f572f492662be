package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// compare compares rules under the calls of a csv.
func compare(t interface{ Fatal(...any) }, before, now []Rule, text string) *Comparison {
	calls, err := ReadCalls(strings.NewReader(text), Span{})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compare(context.Background(), before, now, calls)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// drawCalls draws a csv of few calls of the methods a.A.M and a.A.N, with two keys and a limit and a condition.
func drawCalls(t *rapid.T) string {
	var text strings.Builder
	text.WriteString("method,timestamp,{user},perKey(user),when\nM,0,ann,1,true\n")
	at := 0
	for range rapid.IntRange(1, 40).Draw(t, "calls") {
		at += rapid.IntRange(0, 3000).Draw(t, "later") // milliseconds
		fmt.Fprintf(&text, "%s,%d.%03d,%s,%d,%t\n", rapid.SampledFrom([]string{"M", "A.N"}).Draw(t, "method"), at/1000, at%1000,
			rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "key"), rapid.IntRange(-1, 4).Draw(t, "limit"), rapid.Bool().Draw(t, "when"))
	}
	return text.String()
}

// drawRules draws rules of these methods.
func drawRules(t *rapid.T) (rules []Rule) {
	for i, r := range rapid.SliceOfN(rapid.Custom(drawRule), 1, 4).Draw(t, "rules") {
		if r.Method = "a.A.M"; i > 0 {
			r.Method = rapid.SampledFrom([]string{"a.A.M", "a.A.N"}).Draw(t, "method")
		}
		r.Name = fmt.Sprint("r", i)
		if rapid.Bool().Draw(t, "conditional") {
			r.WhenExpr = "len(user) > 3"
		}
		if computed := r; rapid.Bool().Draw(t, "computed") {
			computed.Limit, computed.Computed, computed.LimitExpr, computed.Burst = 0, true, "perKey(user)", 0
			if computed.Validate() == nil {
				r = computed
			}
		}
		rules = append(rules, r)
	}
	return rules
}

// reaching returns how many calls of the csv the rule applies to.
func reaching(text string, r *Rule) (calls int64) {
	for line := range strings.Lines(text) {
		fields := strings.Split(strings.TrimSpace(line), ",")
		if strings.HasSuffix(r.Method, "."+fields[0]) && (r.WhenExpr == "" || fields[4] == "true") {
			calls++
		}
	}
	return calls
}

// Nothing is decided otherwise than by the same rules.
func TestAgainstItself(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules := drawRules(t)
		text := drawCalls(t)
		c := compare(t, rules, rules, text)
		for i, r := range c.Rules {
			if len(r.Differences) > 0 || r.Before != r.Now || r.NotCompared != "" || r.Calls != reaching(text, &rules[i]) {
				t.Fatalf("%+v\n%s", r, text)
			}
		}
		if c.Otherwise != 0 || c.Calls == 0 || len(c.Rules) != len(rules) {
			t.Fatalf("%+v", c)
		}
	})
}

// A column that no rule needs changes nothing, although it makes all lines different: calls that charge the same wait in one queue.
func TestCompareUnusedColumn(t *testing.T) {
	runs := rule("runs", ratelimit.Rule{Algorithm: ratelimit.Concurrency, Limit: 2, Wait: 8 * time.Second})
	costly := rule("costly", ratelimit.Rule{Limit: 15, Per: 30 * time.Second})
	costly.CostExpr = "n"
	rapid.Check(t, func(t *rapid.T) {
		plain, more, at := "timestamp,n\n", "timestamp,n,unused\n", 0
		for i := range rapid.IntRange(1, 100).Draw(t, "calls") {
			at += rapid.IntRange(0, 300).Draw(t, "later") // milliseconds
			line := fmt.Sprintf("%d.%03d,%d", at/1000, at%1000, rapid.IntRange(1, 4).Draw(t, "cost"))
			plain, more = plain+line+"\n", more+fmt.Sprintf("%s,%d\n", line, i)
		}
		rules := []Rule{runs, costly}
		if want, got := differences(compare(t, nil, rules, plain)), differences(compare(t, nil, rules, more)); got != want {
			t.Fatalf("with another column: %s\nwithout: %s\n%s", got, want, plain)
		}
	})
}

// window is a sliding window as a list of the times of admitted calls.
type window map[string][]time.Duration

func (w window) admits(key string, at time.Duration, limit int, per time.Duration) bool {
	w[key] = slices.DeleteFunc(w[key], func(t time.Duration) bool { return t <= at-per })
	if len(w[key]) >= limit {
		return false
	}
	w[key] = append(w[key], at)
	return true
}

// The reported calls, keys and first calls are those whose decisions differ, by a list of times for each of two limits.
func TestDifferencesLikeLists(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits, windows, pers := [2]int{}, [2]window{{}, {}}, [2]time.Duration{}
		var rules [2][]Rule
		for i := range limits {
			limits[i] = rapid.IntRange(0, 5).Draw(t, "limit")
			pers[i] = time.Duration(rapid.IntRange(1, 5).Draw(t, "per")) * time.Second
			rules[i] = []Rule{{Method: "a.A.M", Rule: ratelimit.Rule{Name: "users", Key: "{user}", Limit: int64(limits[i]), Per: pers[i]}}}
		}
		type kind struct{ was, now Verdict }
		want, text := map[kind]*Difference{}, "timestamp,key\n"
		at := time.Duration(0)
		for i := range rapid.IntRange(1, 40).Draw(t, "calls") {
			at += time.Duration(rapid.IntRange(0, 1500).Draw(t, "later")) * time.Millisecond
			key := rapid.SampledFrom([]string{"ann", "bob", "cid"}).Draw(t, "key")
			text += fmt.Sprintf("%.3f,%s\n", at.Seconds(), key)
			var verdicts [2]Verdict
			for i, w := range windows {
				if !w.admits(key, at, limits[i], pers[i]) {
					verdicts[i] = Refused
				}
			}
			if verdicts[0] == verdicts[1] {
				continue
			}
			k := kind{verdicts[0], verdicts[1]}
			if want[k] == nil {
				want[k] = &Difference{keys: map[string]int64{}, First: Example{Line: i + 2, Key: key, Time: epoch.Add(at)}}
			}
			want[k].Calls++
			want[k].keys[key]++
		}
		c := compare(t, rules[0], rules[1], text)
		otherwise := int64(0)
		for _, d := range c.Rules[0].Differences {
			w := want[kind{d.Was, d.Now}]
			if w == nil || d.Calls != w.Calls || len(d.Keys) != len(w.keys) || d.First.Line != w.First.Line || d.First.Key != w.First.Key || !d.First.Time.Equal(w.First.Time) {
				t.Fatalf("%+v; expected %+v\n%s", d, w, text)
			}
			for _, k := range d.Keys {
				if w.keys[k.Key] != k.Calls {
					t.Fatalf("%+v; expected %v", k, w.keys)
				}
			}
			otherwise += d.Calls
			delete(want, kind{d.Was, d.Now})
		}
		if len(want) > 0 || c.Otherwise != otherwise {
			t.Fatalf("%d calls otherwise, %v are missing", c.Otherwise, want)
		}
	})
}

// The reported calls are those that two limiters decide differently, whatever the algorithms are.
func TestDifferencesLikeLimiters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rules [2][]Rule
		var limiters [2]*ratelimit.Limiter
		var now time.Time
		for i := range rules {
			for j, r := range rapid.SliceOfN(rapid.Custom(drawRule), 1, 3).Draw(t, "rules") {
				r.Method, r.Name, r.Cost, r.Mode, r.Wait = "a.A.M", fmt.Sprint("r", j), 1, ratelimit.ModeEnforce, 0
				if r.Algorithm != ratelimit.Concurrency { // its calls have to end
					rules[i] = append(rules[i], r)
				}
			}
			limiters[i] = ratelimit.New(memstore.New(memstore.WithClock(func() time.Time { return now })))
		}
		text, at, want := "timestamp,key\n", time.Duration(0), []int{}
		for line := range rapid.IntRange(1, 40).Draw(t, "calls") {
			at += time.Duration(rapid.IntRange(0, 3000).Draw(t, "later")) * time.Millisecond
			key := rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "key")
			text, now = text+fmt.Sprintf("%.3f,%s\n", at.Seconds(), key), epoch.Add(at)
			allowed := [2]bool{true, true}
			for i, limiter := range limiters {
				var requests []ratelimit.Request
				for _, r := range rules[i] {
					request := ratelimit.Request{Rule: r.Rule}
					if r.Key != "" {
						request.Key = key
					}
					requests = append(requests, request)
				}
				if len(requests) == 0 {
					continue
				}
				d, err := limiter.Allow(context.Background(), requests...)
				if err != nil {
					t.Fatal(err)
				}
				allowed[i] = d.Allowed
			}
			if allowed[0] != allowed[1] {
				want = append(want, line+2)
			}
		}
		if len(rules[0])+len(rules[1]) == 0 {
			return
		}
		c := compare(t, rules[0], rules[1], text)
		var first []int
		for _, r := range c.Rules {
			for _, d := range r.Differences {
				first = append(first, d.First.Line)
			}
		}
		if c.Otherwise != int64(len(want)) || len(want) > 0 && slices.Min(first) != want[0] {
			t.Fatalf("%d, the first of them in the lines %v; expected the lines %v\n%s", c.Otherwise, first, want, text)
		}
	})
}

// simulated returns the result of rules for the calls of a csv.
func simulated(t *rapid.T, rules []Rule, text string) *Result {
	load, err := ReadCSV(strings.NewReader(text), Span{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := Run(context.Background(), rules, load)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Compared with no rules, the calls decided otherwise are those that a simulation refuses or lets wait.
func TestDifferencesLikeARun(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rules []Rule
		for i, r := range rapid.SliceOfN(rapid.Custom(drawRule), 1, 3).Draw(t, "rules") {
			r.Method, r.Name, r.Mode = "a.A.M", fmt.Sprint("r", i), ratelimit.ModeEnforce
			rules = append(rules, r)
		}
		text, at := "", 0
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			at += rapid.IntRange(0, 1500).Draw(t, "later") // milliseconds
			text += fmt.Sprintf("%d.%03d,%s\n", at/1000, at%1000, rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "key"))
		}
		r, c := simulated(t, rules, text), compare(t, nil, rules, text)
		if c.Otherwise != r.Refused+r.Waited {
			t.Fatalf("%d are decided otherwise, but %d are refused and %d wait\n%s", c.Otherwise, r.Refused, r.Waited, text)
		}
	})
}

// The first call is the first of the file, also if it waits so long that others are decided before it.
func TestCompareFirstOfWaitingCalls(t *testing.T) {
	one := rule("one", ratelimit.Rule{Key: "{a}", Limit: 10, Per: time.Second, Algorithm: ratelimit.TokenBucket})
	other := rule("other", ratelimit.Rule{Key: "{a}", Limit: 1, Wait: time.Hour, Scope: ratelimit.ScopeInstance})
	one.Wait = time.Hour
	d := compare(t, nil, []Rule{one, other}, "0,b\n1,a\n2,a\n3,b\n").Rules[1].Differences
	if len(d) != 1 || d[0].Calls != 2 || d[0].First.Line != 3 || d[0].First.Now.String() != "waited for 59s" {
		t.Errorf("%+v", d)
	}
}

// rule returns a rule of the method a.A.M.
func rule(name string, r ratelimit.Rule) Rule {
	if r.Name = name; r.Per == 0 {
		r.Per = time.Minute
	}
	return Rule{Rule: r, Method: "a.A.M", Text: fmt.Sprintf("limit=%d per=%s", r.Limit, r.Per)}
}

// differences returns the differences of all rules as text.
func differences(c *Comparison) string {
	var all []string
	for i := range c.Rules {
		for _, d := range c.Rules[i].Differences {
			all = append(all, fmt.Sprintf("%s %d %s", c.Rules[i].Rule, d.Calls, &d.First))
		}
	}
	return strings.Join(all, "; ")
}

func TestCompareRules(t *testing.T) {
	few, many := ratelimit.Rule{Limit: 1}, ratelimit.Rule{Limit: 2}
	waits, shadow := ratelimit.Rule{Limit: 1, Wait: time.Hour}, ratelimit.Rule{Limit: 1, Mode: ratelimit.ModeShadow}
	const text = "0\n1\n2.5\n"
	const one = "1970-01-01T00:00:01Z "
	for name, test := range map[string]struct {
		before, now []Rule
		want        string
	}{
		"the limit is lower": {[]Rule{rule("r", many)}, []Rule{rule("r", few)}, "r 1 " + one + "admitted, now refused for 59s"},
		"the rule is new":    {nil, []Rule{rule("r", many)}, "r 1 1970-01-01T00:00:02.5Z admitted, now refused for 57.5s"},
		"the rule is gone":   {[]Rule{rule("r", few)}, nil, "r 2 " + one + "refused for 59s, now admitted"},
		"another name":       {[]Rule{rule("r", few)}, []Rule{rule("s", few)}, ""},
		"another window":     {[]Rule{rule("r", few)}, []Rule{rule("r", ratelimit.Rule{Limit: 1, Per: time.Second})}, "r 2 " + one + "refused for 59s, now admitted"},
		"now calls wait":     {[]Rule{rule("r", few)}, []Rule{rule("r", waits)}, "r 2 " + one + "refused for 59s, now waited for 59s"},
		"now in shadow mode": {[]Rule{rule("r", few)}, []Rule{rule("r", shadow)}, "r 2 " + one + "refused for 59s, now would refuse for 59s"},
		"only in shadow":     {nil, []Rule{rule("r", shadow)}, "r 2 " + one + "admitted, now would refuse for 59s"},
		"it never admits":    {nil, []Rule{rule("r", ratelimit.Rule{})}, "r 3 1970-01-01T00:00:00Z admitted, now refused for ever"},
		"another refuses":    {[]Rule{rule("r", few), rule("s", few)}, []Rule{rule("r", few)}, ""},
	} {
		if got := differences(compare(t, test.before, test.now, text)); got != test.want {
			t.Errorf("%s: %s\nexpected %s", name, got, test.want)
		}
	}
}

// Calls of all costs are refused as in generated code. A call of cost 0 takes nothing of a rule, which does not refuse it.
func TestCostsLikeGeneratedCode(t *testing.T) {
	drawn := rapid.Custom(drawRule).Filter(func(r Rule) bool { return r.Algorithm != ratelimit.Concurrency }) // its calls have to end
	rapid.Check(t, func(t *rapid.T) {
		rules, wrapped := rapid.SliceOfN(drawn, 1, 3).Draw(t, "rules"), []ratelimit.Rule(nil)
		for i := range rules {
			r := &rules[i]
			r.Method, r.Name, r.Mode, r.Wait, r.Cost, r.CostExpr = "a.A.M", fmt.Sprint("r", i), ratelimit.ModeEnforce, 0, 0, "len(data)"
			wrapped = append(wrapped, r.Rule)
		}
		var now time.Time
		limiter := ratelimit.New(memstore.New(memstore.WithClock(func() time.Time { return now })))
		generated := wrap.NewRules("a.A.M", wrapped...)
		text, at, want := "timestamp,key,cost\n", time.Duration(0), int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "calls") {
			at += time.Duration(rapid.IntRange(0, 1500).Draw(t, "later")) * time.Millisecond
			key, cost := rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "key"), rapid.Int64Range(0, 4).Draw(t, "cost")
			text, now = text+fmt.Sprintf("%.3f,%s,%d\n", at.Seconds(), key, cost), epoch.Add(at)
			var charges []wrap.Charge
			for _, r := range rules {
				charges = append(charges, wrap.Charge{Cost: cost})
				if r.Key != "" {
					charges[len(charges)-1].Key = key
				}
			}
			if wrap.TakeCharges(context.Background(), generated.On(limiter), generated, charges...) != nil {
				want++
			}
		}
		r, c := simulated(t, rules, text), compare(t, nil, rules, text)
		if c.Otherwise != want || r.Refused != want {
			t.Fatalf("%d are refused in the comparison and %d in the run; expected %d\n%s", c.Otherwise, r.Refused, want, text)
		}
	})
}

// A rule whose cost can never be admitted refuses, although no event says so.
func TestCompareCosts(t *testing.T) {
	small := rule("small", ratelimit.Rule{Limit: 2})
	small.CostExpr = "len(items)"
	all := rule("all", ratelimit.Rule{Limit: 100})
	got := differences(compare(t, []Rule{all}, []Rule{all, small}, "timestamp,cost\n0,1\n0,3\n1,1\n2,1\n"))
	if got != "small 2 1970-01-01T00:00:00Z admitted, now refused for ever" {
		t.Error(got)
	}
}

// A refusal is that of the rule that refused, also if rules before it do not apply to the call and have the same name.
func TestCompareRulesThatDoNotApply(t *testing.T) {
	first, second := rule("a.A", ratelimit.Rule{Key: "{a}", Computed: true}), rule("a.A", ratelimit.Rule{Key: "{b}", Limit: 1})
	first.LimitExpr, first.WhenExpr, first.CostExpr, first.Text, second.Text = "n", "vip", "len(c)", "first", "second"
	for _, skipped := range []string{"-1,true,1", "5,false,1", "5,true,0", "5,true,1"} {
		text := "timestamp,{a},{b},n,vip,len(c)\n0,1,2," + skipped + "\n1,1,2," + skipped + "\n"
		c := compare(t, nil, []Rule{first, second}, text)
		if len(c.Rules[0].Differences) > 0 || len(c.Rules[1].Differences) != 1 || c.Rules[1].Differences[0].First.Key != "2" {
			t.Errorf("%s: %+v", skipped, c.Rules)
		}
	}
}

// A rule of several methods has one note.
func TestCompareNotes(t *testing.T) {
	before, now := rule("r", ratelimit.Rule{Limit: 1}), rule("r", ratelimit.Rule{Limit: 2})
	other, same := now, rule("s", ratelimit.Rule{Limit: 1})
	same.Ignored = []string{"settle="}
	other.Method = "a.A.N"
	renamed := same
	renamed.Name = "t"
	wasOther := before
	wasOther.Method = "a.A.N"
	var out strings.Builder
	c := compare(t, []Rule{before, wasOther, same}, []Rule{now, other, renamed}, "timestamp,method\n1,M\n")
	const want = `
: 1 call, 0 of them are decided otherwise

changed: r of a.A.M, a.A.N: limit=2 per=1m0s; was limit=1 per=1m0s
no calls: r of a.A.N
renamed: t of a.A.M: was s
not simulated: t of a.A.M: settle=
`
	if err := c.PrintTable(&out); err != nil || "\n"+out.String() != want {
		t.Errorf("%v%s\nexpected%s", err, out.String(), want)
	}
}

// Of many keys, the first are counted one by one.
func TestCompareManyKeys(t *testing.T) {
	r := rule("r", ratelimit.Rule{Key: "{a}"})
	var text strings.Builder
	text.WriteString("timestamp,key\n")
	for i := range maxDifferentKeys + 5 {
		fmt.Fprintf(&text, "%d,%d\n", i, i)
	}
	d := compare(t, nil, []Rule{r}, text.String()).Rules[0].Differences[0]
	if len(d.Keys) != maxDifferentKeys || d.OtherKeys != 5 || d.Calls != maxDifferentKeys+5 || d.keyCount() != "over 10000" {
		t.Errorf("%d keys, %d calls of others, of %d", len(d.Keys), d.OtherKeys, d.Calls)
	}
}

// A full store is an error, also if a program would admit the call then.
func TestCompareInFullStore(t *testing.T) {
	r := rule("r", ratelimit.Rule{Key: "{a}", Limit: 1, OnError: ratelimit.FailOpen})
	s := newSimulator(1, 0)
	p, err := s.prepare("a.A.M", []ratelimit.Rule{r.Rule})
	if err != nil {
		t.Fatal(err)
	}
	for i, key := range []string{"ann", "bob"} {
		_, err := s.begin(t.Context(), p, []wrap.Charge{{Key: key, Cost: 1}})
		if _, failed := errors.AsType[*ratelimit.StoreError](err); failed != (i > 0) {
			t.Errorf("%s: got error %v", key, err)
		}
	}
}

// The windows of a key count from the anchor of its calls.
func TestCompareAnchors(t *testing.T) {
	anchored := func(limit int64, anchor string) []Rule {
		return []Rule{{Rule: ratelimit.Rule{Name: "r", Key: "{c.ID}", Limit: limit, Every: "1d"}, Method: "a.A.M", Text: fmt.Sprint("limit=", limit), AnchorExpr: anchor}}
	}
	const calls = "0,a,43200\n1,a,43200\n43200,a,43200\n43201,b,1969-12-31T00:00:00Z\n43202,b,1969-12-31T00:00:00Z\n"
	got := differences(compare(t, anchored(2, "c.Since"), anchored(1, "c.Since"), "timestamp,key,c.Since\n"+calls))
	if got != "r 2 1970-01-01T00:00:01Z a admitted, now refused for 11h59m59s" {
		t.Error(got)
	}
	got = differences(compare(t, anchored(2, "anchor"), anchored(1, "anchor"), "timestamp,key,anchor\n"+calls))
	if got != "r 2 1970-01-01T00:00:01Z a admitted, now refused for 11h59m59s" {
		t.Error(got)
	}
	c := compare(t, anchored(2, "c.Since"), anchored(1, "c.Since"), "timestamp,key\n0,a\n")
	if got, want := c.Rules[0].NotCompared, `anchor="c.Since" needs a column anchor or "c.Since"`; got != want {
		t.Errorf("%s; expected %s", got, want)
	}
}

// Methods share the count of a rule, as in a program.
func TestCompareSharedRule(t *testing.T) {
	shared := func(limit int64) []Rule {
		one, other := rule("shared", ratelimit.Rule{Limit: limit}), rule("shared", ratelimit.Rule{Limit: limit})
		other.Method = "b.B.N"
		return []Rule{one, other}
	}
	got := differences(compare(t, shared(2), shared(1), "timestamp,method\n0,M\n1,b.B.N\n2,M\n"))
	if got != "shared 1 1970-01-01T00:00:01Z admitted, now refused for 59s" {
		t.Error(got)
	}
}

func TestNotCompared(t *testing.T) {
	expr := func(key, limit, when string) Rule {
		r := rule("r", ratelimit.Rule{Key: key, Limit: 1, Computed: limit != ""})
		if r.LimitExpr, r.WhenExpr, r.Text = limit, when, fmt.Sprint(key, limit, when); limit != "" {
			r.Limit = 0
		}
		return r
	}
	for _, test := range []struct {
		was, now      Rule
		columns, want string
	}{
		{expr("", "", ""), expr("", "", ""), "timestamp", ""},
		{expr("{a}", "", ""), expr("{a}", "", ""), "timestamp", `key="{a}" needs a column key or "{a}"`},
		{expr("{a}", "", ""), expr("", "", ""), "timestamp", `key="{a}" needs a column key or "{a}"`},
		{expr("{a}", "", ""), expr("{b}", "", ""), "timestamp,key", `key="{b}" and key="{a}" need a column each, of these names`},
		{expr("{a}", "", ""), expr("{b}", "", ""), "timestamp,key,{a}", ""},
		{expr("", "n", ""), expr("", "", ""), "timestamp,n", ""},
		{expr("", "n", ""), expr("", "m", ""), "timestamp,n,m", ""},
		{expr("", "", ""), expr("", "n", ""), "timestamp", `limit="n" needs a column limit or "n"`},
		{expr("", "", "vip"), expr("", "", "vip"), "timestamp,key", `when="vip" needs a column when or "vip"`},
		{expr("", "", "vip"), expr("", "", "vip"), "timestamp,when", ""},
	} {
		c := compare(t, []Rule{test.was}, []Rule{test.now}, test.columns+"\n1"+strings.Repeat(",1", strings.Count(test.columns, ","))+"\n")
		if got := c.Rules[0].NotCompared; got != test.want {
			t.Errorf("%s: %s; expected %s", test.columns, got, test.want)
		}
		if passes := test.want == "" || test.was.Text == test.now.Text; c.Passes() != passes {
			t.Errorf("%s: from %s to %s passes: %t", test.columns, test.was.Text, test.now.Text, !passes)
		}
	}
}

// A comparison does not pass if a new rule, or a rule that is gone, is not compared. It passes if a rule that is not compared has only got another name.
func TestNotComparedAlone(t *testing.T) {
	keyed := rule("r", ratelimit.Rule{Key: "{a}", Limit: 1})
	renamed := keyed
	renamed.Name = "s"
	for _, test := range []struct {
		before, now []Rule
		passes      bool
	}{
		{[]Rule{keyed}, nil, false},
		{nil, []Rule{keyed}, false},
		{[]Rule{keyed}, []Rule{renamed}, true},
	} {
		c := compare(t, test.before, test.now, "timestamp\n1\n")
		if c.Rules[0].NotCompared == "" || c.Passes() != test.passes {
			t.Errorf("%+v", c)
		}
	}
}

// A rule that no call reaches has a note, with its arguments if another rule of the method has its name. A rule on one side is reached by its calls.
func TestCompareWithoutCalls(t *testing.T) {
	first, second, gone := rule("r", ratelimit.Rule{Limit: 1}), rule("r", ratelimit.Rule{Limit: 2}), rule("s", ratelimit.Rule{Limit: 3})
	second.WhenExpr = "vip"
	c := compare(t, []Rule{first, second, gone}, []Rule{first, second}, "timestamp,vip\n1,false\n")
	var notes []note
	for i := range c.Rules {
		notes = append(notes, c.notes(&c.Rules[i])...)
	}
	want := []note{{"no calls", "r limit=2 per=1m0s", ""}, {"gone", "s", "limit=3 per=1m0s"}}
	if !slices.Equal(notes, want) || c.Rules[0].Calls != 1 || c.Rules[1].Calls != 0 || c.Rules[2].Calls != 1 {
		t.Errorf("%q; expected %q; %+v", notes, want, c.Rules)
	}
	changed := second
	changed.Text = "limit=1"
	if c := compare(t, []Rule{second}, []Rule{changed}, "timestamp,vip\n1,false\n"); !c.Passes() || len(c.notes(&c.Rules[0])) != 2 {
		t.Errorf("a changed rule without calls fails: %+v", c)
	}
}

// A column serves one key of a method. Other methods may have another one.
func TestSharedColumns(t *testing.T) {
	one, other := rule("one", ratelimit.Rule{Key: "{a}", Limit: 1}), rule("other", ratelimit.Rule{Key: "{b}", Limit: 1})
	const both = `key="{a}" and key="{b}" need a column each, of these names`
	for columns, want := range map[string]string{"key": both, "key,{c}": both, "key,{a}": "", "{b},{a}": "", "{a}": `key="{b}" needs a column key or "{b}"`} {
		c := compare(t, []Rule{one, other}, []Rule{one, other}, "timestamp,"+columns+"\n1"+strings.Repeat(",1", strings.Count(columns, ",")+1)+"\n")
		if got := c.Rules[0].NotCompared + c.Rules[1].NotCompared; !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %s; expected %s", columns, got, want)
		}
	}
	other.Method = "a.A.N"
	if c := compare(t, nil, []Rule{one, other}, "timestamp,method,key\n1,M,1\n"); c.Rules[0].NotCompared+c.Rules[1].NotCompared != "" {
		t.Errorf("%+v", c.Rules)
	}
}

// A call is of the method with just the name in the csv, or else of the one whose name ends in it.
func TestNamesOfMethods(t *testing.T) {
	short, long, other := rule("short", ratelimit.Rule{Limit: 1}), rule("long", ratelimit.Rule{Limit: 1}), rule("other", ratelimit.Rule{Limit: 1})
	short.Method, long.Method, other.Method = "a.A.M", "x.a.A.M", "b.c.B.N"
	c := compare(t, nil, []Rule{short, long, other}, "timestamp,method\n1,a.A.M\n1,x.a.A.M\n1,x.a.A.M\n1,N\n1,B.N\n1,c.B.N\n1,b.c.B.N\n1,C.N\n1,\n1,.N\n")
	if c.Rules[0].Calls != 1 || c.Rules[1].Calls != 2 || c.Rules[2].Calls != 4 || c.Others != 3 || c.Other != (Other{"C.N", 9}) {
		t.Errorf("got %+v", c)
	}
}

func TestWrongCalls(t *testing.T) {
	keyed, limited, conditional := rule("r", ratelimit.Rule{Key: "{a}", Limit: 1}), rule("r", ratelimit.Rule{Computed: true}), rule("r", ratelimit.Rule{Limit: 1})
	limited.LimitExpr, conditional.WhenExpr = "n", "vip"
	other, third := rule("r", ratelimit.Rule{Limit: 1}), rule("r", ratelimit.Rule{Limit: 1})
	other.Method, third.Method = "b.B.M", "b.B.N"
	for _, test := range []struct {
		text  string
		want  string
		rules []Rule
	}{
		{"", "found no calls", nil},
		{"timestamp,key\n", "found no calls", []Rule{keyed}},
		{"2,a\n1,a\n", `line 2: the timestamp "1" is before that of the call above; sort the lines by time`, []Rule{keyed}},
		{"1,a\n2\n", `line 2: r: the key is missing; key="{a}" needs one in each line`, []Rule{keyed}},
		{"timestamp,n\n1,x\n", `line 2: r: the limit is "x"; expected an integer of at least 0, or -1 for no limit`, []Rule{limited}},
		{"timestamp,n\n1,-2\n", `line 2: r: the limit is "-2"`, []Rule{limited}},
		{"timestamp,when\n1,perhaps\n", `line 2: r: when is "perhaps"; expected true or false`, []Rule{conditional}},
		{"timestamp,{a},method,{a}\n1,x,M,y\n", `line 1: found two columns "{a}"; expected each name once`, []Rule{keyed}},
		{"timestamp\n1,x\n", "line 2: found 2 fields; expected timestamp", []Rule{conditional}},
		{"1\n", "the rules are of several methods; write a column method, or choose one with -method: a.A.M, b.B.M", []Rule{conditional, other}},
		{"timestamp,method\n1,M\n", `line 2: several methods end in "M"; write one of a.A.M, b.B.M`, []Rule{conditional, third, other}},
		{"timestamp,method\n1,N\n", `found no call of a method with rules; the first is of "N"; expected a.A.M`, []Rule{keyed}},
	} {
		calls, err := ReadCalls(strings.NewReader(test.text), Span{})
		if err == nil {
			_, err = Compare(t.Context(), test.rules, test.rules, calls)
		}
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%q: error %v; expected %s", test.text, err, test.want)
		}
	}
}

// The names of columns may begin with a capital, but texts of expressions are as in the directive.
func TestCompareNamesOfColumns(t *testing.T) {
	one, other := rule("one", ratelimit.Rule{Key: "{a}", Limit: 1}), rule("other", ratelimit.Rule{Limit: 1})
	other.WhenExpr, other.Method = "vip", "a.A.N"
	c := compare(t, nil, []Rule{one, other}, "Timestamp,Method,Key,When\n1,M,x,true\n2,N,x,true\n")
	if c.Calls != 2 || c.Others != 0 || c.Rules[0].NotCompared+c.Rules[1].NotCompared != "" {
		t.Errorf("%+v", c)
	}
	c = compare(t, nil, []Rule{one, other}, "timestamp,method,{A},VIP,,\n1,M,x,true\n")
	if c.Rules[0].NotCompared == "" || c.Rules[1].NotCompared == "" {
		t.Errorf("%+v", c)
	}
}

// Calls outside the span are left out.
func TestCompareSpan(t *testing.T) {
	calls, err := ReadCalls(strings.NewReader("1\n2\n3\n4\n5\n"), Span{Start: epoch.Add(2 * time.Second), Length: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c, err := Compare(t.Context(), nil, []Rule{rule("r", ratelimit.Rule{Limit: 1})}, calls)
	if err != nil || c.Calls != 2 || c.Otherwise != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestCompareInterrupted(t *testing.T) {
	calls, err := ReadCalls(strings.NewReader("1\n"), Span{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rules := []Rule{rule("r", ratelimit.Rule{Limit: 1})}
	if _, err := Compare(ctx, rules, rules, calls); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
