package generator

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// meter counts what calls cost a server.
type meter struct {
	*testing.T
	server  *redistest.Server
	limiter *ratelimit.Limiter
}

func newMeter(t *testing.T) *meter {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { client.Close() })
	m := &meter{t, server, ratelimit.New(redisstore.New(client))}
	m.allow(ratelimit.Rule{Name: "warm-up", Limit: 1, Per: time.Minute}, 1, "") // so that the server knows the script
	return m
}

var (
	calls = regexp.MustCompile(`cmdstat_([a-z_|]+):calls=([0-9]+)`)
	// besides are the commands that are not of the rules: two of each call, one by which the limiter follows changed limits
	// now and then, those that begin a connection, and two of the test.
	besides = regexp.MustCompile(`^(evalsha|time|hgetall|hello|client\|.*|config\|resetstat|info)$`)
)

// subject is as long as the estimates are for.
const subject = "0123456789abcdef"

// allow makes a call that must be admitted, and returns how many commands that took.
func (m *meter) allow(r ratelimit.Rule, cost int64, member string) (commands int) {
	m.Helper()
	m.server.Do("CONFIG RESETSTAT")
	d, err := m.limiter.Allow(m.Context(), ratelimit.Request{Rule: r, Key: subject, Cost: cost, Member: member})
	if err != nil || !d.Allowed {
		m.Fatalf("%+v: %+v, %v", r, d, err)
	}
	for _, c := range calls.FindAllStringSubmatch(m.server.Do("INFO commandstats"), -1) {
		if n, _ := strconv.Atoi(c[2]); !besides.MatchString(c[1]) {
			commands += n
		}
	}
	return commands
}

// bytes is what all keys take.
func (m *meter) bytes() (sum int64) {
	for _, key := range strings.Fields(m.server.Do("KEYS *")) {
		n, err := strconv.ParseInt(m.server.Do("MEMORY USAGE "+key+" SAMPLES 0"), 10, 64)
		if err != nil {
			m.Fatal(err)
		}
		sum += n
	}
	return sum
}

// TestCostInCommands makes calls with all kinds of pauses until both the least and the most that a rule is said to cost were
// seen, and nothing else ever.
func TestCostInCommands(t *testing.T) {
	const per, tries = 400 * time.Millisecond, 200
	m := newMeter(t)
	for name, c := range map[string]struct {
		rule   ratelimit.Rule
		pauses []time.Duration // after a call, by turns
		known  bool            // every other call names a member that was admitted
	}{
		"log":     {rule: ratelimit.Rule{Limit: 2, Per: per}, pauses: []time.Duration{0, per + 5*time.Millisecond, per + 5*time.Millisecond}},
		"fixed":   {rule: ratelimit.Rule{Limit: 1000, Per: per, Algorithm: ratelimit.FixedWindow}},
		"daily":   {rule: ratelimit.Rule{Limit: 1000, Cron: "@daily"}},
		"bucket":  {rule: ratelimit.Rule{Limit: 10_000, Per: time.Second, Algorithm: ratelimit.TokenBucket}},
		"leaky":   {rule: ratelimit.Rule{Limit: 1000, Per: time.Second, Algorithm: ratelimit.LeakyBucket}, pauses: []time.Duration{2 * time.Millisecond}},
		"prepaid": {rule: ratelimit.Rule{Limit: 10_000, Per: time.Second, Algorithm: ratelimit.TokenBucket, Prepay: true}},
		"warm": {rule: ratelimit.Rule{Limit: 10_000, Per: time.Second, Algorithm: ratelimit.TokenBucket, Warmup: 10 * time.Millisecond},
			pauses: []time.Duration{5 * time.Millisecond}},
		"slices": {rule: ratelimit.Rule{Limit: 1000, Per: per, Algorithm: ratelimit.SlidingCounter, Slices: 2},
			pauses: []time.Duration{0, per}},
		"members":       {rule: ratelimit.Rule{Limit: 1000, Per: time.Hour, Distinct: "{m}"}, known: true},
		"daily members": {rule: ratelimit.Rule{Limit: 1000, Cron: "@daily", Distinct: "{m}"}, known: true},
		"trigger":       {rule: ratelimit.Rule{Limit: 2, Per: per, Mode: ratelimit.ModeTrigger}, pauses: []time.Duration{per / 4}},
		"block":         {rule: ratelimit.Rule{Limit: 1000, Per: time.Hour, Algorithm: ratelimit.FixedWindow, Block: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			m := &meter{t, m.server, m.limiter}
			c.rule.Name = strings.ReplaceAll(name, " ", "-")
			cost := costOf(c.rule, c.rule.Limit, "")
			seen := map[int]bool{}
			for i := 0; i < tries && !(i >= 4 && seen[cost.Least] && seen[cost.Most]); i++ {
				member := ""
				if c.known {
					member = fmt.Sprint(i / 2)
				}
				n := m.allow(c.rule, 1, member)
				if seen[n] = true; n < cost.Least || n > cost.Most {
					t.Fatalf("call %d took %d commands, expected %d to %d", i, n, cost.Least, cost.Most)
				}
				if len(c.pauses) > 0 {
					time.Sleep(c.pauses[i%len(c.pauses)])
				}
			}
			if !seen[cost.Least] || !seen[cost.Most] {
				t.Errorf("calls took %v commands, and never both %d and %d", seen, cost.Least, cost.Most)
			}
		})
	}
}

// TestCostInCommandsOfManyPermits shows up to where the commands do not depend on what a call takes.
func TestCostInCommandsOfManyPermits(t *testing.T) {
	m := newMeter(t)
	rule := ratelimit.Rule{Name: "many", Limit: 10_000, Per: time.Hour}
	if one, many := m.allow(rule, 1, ""), m.allow(rule, 1000, ""); many > one {
		t.Errorf("1000 permits took %d commands, one took %d", many, one)
	}
}

// TestCostInBytes fills the windows of all kinds of rules, for subjects and members of 16 bytes.
func TestCostInBytes(t *testing.T) {
	rules := map[string]ratelimit.Rule{
		"daily":   {Limit: 5, Cron: "@daily"},
		"fixed":   {Limit: 5, Per: time.Hour, Algorithm: ratelimit.FixedWindow},
		"bucket":  {Limit: 5, Per: time.Hour, Algorithm: ratelimit.TokenBucket},
		"leaky":   {Limit: 1, Per: time.Hour, Algorithm: ratelimit.LeakyBucket},
		"prepaid": {Limit: 5, Per: time.Hour, Algorithm: ratelimit.TokenBucket, Prepay: true},
		"warm":    {Limit: 1, Per: time.Hour, Algorithm: ratelimit.TokenBucket, Warmup: time.Minute},
	}
	for _, limit := range []int64{1, 3, 10, 30, 100, 300, 1000, 3000} {
		rules[fmt.Sprint("log-", limit)] = ratelimit.Rule{Limit: limit, Per: time.Hour}
		rules[fmt.Sprint("members-", limit)] = ratelimit.Rule{Limit: limit, Per: time.Hour, Distinct: "{m}"}
		rules[fmt.Sprint("slices-", limit)] = ratelimit.Rule{Limit: 1, Per: time.Hour, Algorithm: ratelimit.SlidingCounter, Slices: limit}
	}
	m := newMeter(t)
	for name, r := range rules {
		t.Run(name, func(t *testing.T) {
			m := &meter{t, m.server, m.limiter}
			m.server.Do("FLUSHALL")
			r.Name, r.Key = name, "{k}"
			for i := range r.Limit {
				m.allow(r, 1, fmt.Sprintf("%016d", i))
				if r.Distinct == "" && r.Cron+r.Algorithm.String() != ratelimit.SlidingWindow.String() {
					break // one counter
				}
			}
			said, taken := costOf(r, r.Limit, "").Bytes(r.Limit), m.bytes()
			if diff := max(said-taken, taken-said); diff*4 > taken {
				t.Errorf("said to take %d bytes, it takes %d", said, taken)
			}
		})
	}
}

// TestCostOfBlock has a subject that is blocked.
func TestCostOfBlock(t *testing.T) {
	m := newMeter(t)
	m.server.Do("FLUSHALL")
	r := ratelimit.Rule{Name: "blocks", Key: "{k}", Limit: 1, Per: time.Hour, Algorithm: ratelimit.FixedWindow, Block: time.Hour}
	m.allow(r, 1, "")
	if d, err := m.limiter.Allow(t.Context(), ratelimit.Request{Rule: r, Key: subject}); err != nil || d.Allowed {
		t.Fatalf("the second call: %+v, %v", d, err)
	}
	said, taken := costOf(r, r.Limit, "").Bytes(r.Limit), m.bytes()
	if diff := max(said-taken, taken-said); diff*4 > taken {
		t.Errorf("said to take %d bytes, it takes %d", said, taken)
	}
}

func TestKeyBytes(t *testing.T) {
	for name, c := range map[string]struct {
		rule    ratelimit.Rule
		subject string
	}{
		"named":               {ratelimit.Rule{Name: "login", Key: "{k}", Limit: 1, Per: time.Hour}, subject},
		"named, without keys": {ratelimit.Rule{Name: "login", Limit: 1, Cron: "0 0 * * *", TZ: "Asia/Shanghai"}, ""},
		"of the method":       {ratelimit.Rule{Key: "{k}:{l}", Limit: 1, Per: time.Hour}, subject},
		"of the type":         {ratelimit.Rule{Name: "x.X", Key: "{k}", Limit: 1, Per: time.Hour}, subject},
		"without keys":        {ratelimit.Rule{Limit: 1, Per: time.Hour}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeter(t)
			m.server.Do("FLUSHALL")
			if err := wrap.Take(t.Context(), m.limiter, wrap.NewRules("x.X.M", c.rule), c.subject); err != nil {
				t.Fatal(err)
			}
			r := c.rule
			if r.Name == "" {
				r.Name = "x.X.M"
			}
			key, said := m.server.Do("KEYS *"), keyBytes(r, "x.X.M")
			if int64(len(key)) != said {
				t.Errorf("%s has %d bytes, said to have %d", key, len(key), said)
			}
		})
	}
}

func TestCostOfInstance(t *testing.T) {
	if c := costOf(ratelimit.Rule{Limit: 5, Per: time.Hour, Scope: ratelimit.ScopeInstance}, 5, ""); c != (Cost{}) {
		t.Errorf("what is counted in the process costs Redis %+v", c)
	}
}
