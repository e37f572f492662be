package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

const loopAlone = "the loop alone"

// counted returns the cases whose instructions are counted. The loop around the calls is not part of a decision.
func counted() []local {
	token, window := bucket(1_000_000, 24*time.Hour), fixed(1_000_000_000, 24*time.Hour)
	return []local{
		{loopAlone, func() decide { return func(string) (bool, error) { return true, nil } }},
		own("token-bucket", token),
		own("fixed-window", window),
		own("sliding-window, which each subject fills before long", sliding(1000, 300*time.Millisecond)),
		own("token-bucket and fixed-window", token, window),
		{"ours: token-bucket, by Allow", func() decide { return allowing(token) }},
		{"ours: token-bucket, refused", func() decide { return inverted(ours(inProcess(), bucket(1, 24*time.Hour))) }},
		{"ours: token-bucket, while another rule has an override", func() decide { return overridden(token, "other", "") }},
		{"ours: token-bucket, while the key has an override", func() decide { return overridden(token, token.Name, users...) }},
		peers[0],
	}
}

// users are the subjects of the calls. After the last one comes the first one again.
var users = func() (all []string) {
	for range 512 {
		all = append(all, newSubject())
	}
	return all
}()

func allowing(r ratelimit.Rule) decide {
	limiter := inProcess()
	return func(subject string) (bool, error) {
		d, err := limiter.Allow(ctx, ratelimit.Request{Rule: r, Key: subject})
		return d.Allowed, err
	}
}

// inverted admits what d refuses.
func inverted(d decide) decide {
	return func(subject string) (bool, error) {
		allowed, err := d(subject)
		return !allowed, err
	}
}

// overridden decides while a rule has overrides for keys.
func overridden(r ratelimit.Rule, rule string, keys ...string) decide {
	limiter := inProcess()
	for _, key := range keys {
		err := limiter.Overrides().Set(ratelimit.WithActor(ctx, "kim", "counted"), rule, ratelimit.Override{Key: key, Factor: 2})
		if err != nil {
			return failing(err)
		}
	}
	return ours(limiter, r)
}

// repeatCase makes one call for each subject, and n more that are checked.
func repeatCase(name string, n int) error {
	for _, c := range counted() {
		if c.name != name {
			continue
		}
		d := c.make()
		for _, user := range users {
			_, _ = d(user)
		}
		for i := range n {
			if err := d.expect(true, users[i%len(users)]); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		return nil
	}
	return fmt.Errorf("no case is named %q", name)
}

// instructionSections counts the instructions of a decision in process. This program runs itself under valgrind. Unlike times, the figures hardly
// depend on how busy the machine is.
func instructionSections(*redisServer, effort) []section {
	s := section{title: "Instructions of a decision in process", rounds: 1, columns: []column{{"instructions", least, grouped, false}}}
	loop := sync.OnceValues(func() (float64, error) { return instructions(loopAlone) })
	for _, c := range counted()[1:] {
		s.cases = append(s.cases, benchmark{c.name, func() ([]float64, error) {
			each, err := loop()
			if err != nil {
				return nil, err
			}
			n, err := instructions(c.name)
			return []float64{n - each}, err
		}})
	}
	return []section{s}
}

// instructions returns how many instructions a call of a case takes. Of two runs, the second makes twice as many calls, so that the start of the
// program cancels.
func instructions(name string) (float64, error) {
	const calls = 10_000
	once, err := countedBy(name, calls)
	if err != nil {
		return 0, err
	}
	twice, err := countedBy(name, 2*calls)
	return (twice - once) / calls, err
}

// countedBy returns the instructions of a run. Garbage is not collected, and goroutines are not interrupted, because that depends on time.
func countedBy(name string, calls int) (float64, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	out := filepath.Join(os.TempDir(), fmt.Sprintf("ratelimit-cachegrind-%d", os.Getpid()))
	defer os.Remove(out)
	cmd := exec.Command("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file="+out,
		self, "-case", name, "-calls", strconv.Itoa(calls))
	cmd.Env = append(os.Environ(), "GOGC=off", "GOMAXPROCS=1", "GODEBUG=asyncpreemptoff=1")
	if text, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%w (apt-get and dnf install valgrind)\n%s", err, text)
	}
	text, err := os.ReadFile(out)
	if err != nil {
		return 0, err
	}
	_, sum, _ := strings.Cut(string(text), "\nsummary: ")
	return strconv.ParseFloat(strings.TrimSpace(sum), 64)
}
