package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	keyTable     = "Memory of a key in process"
	keyBytes     = "mean of 200,000"
	longestTable = "The longest command"
)

// single are the rows of one rule in several tables, without "ours: ".
var single = []string{"sliding-window", "token-bucket", "fixed-window", "calendar"}

// claims are the sentences of pages that depend on measurements, and what the tables must say.
var claims = []struct {
	page, sentence string
	holds          func(*cells) bool
}{
	{"docs/compare.md", "Redis spends about as much time on a minute limit and a day limit together as on one limit of redis_rate.", func(c *cells) bool {
		return between(0.75, c.number(serverTable, both+", filling; refused by the former", script)/c.number(serverTable, redisRateOne, script), 1.3)
	}},
	{"docs/compare.md", "less Redis memory per key", func(c *cells) bool {
		return all(single, func(r string) bool {
			return c.number(memoryTable, redisRateOne, usage) < c.number(memoryTable, "ours: "+r, usage)
		})
	}},
	{"docs/compare.md", "a very cheap script", func(c *cells) bool {
		ulule := c.number(serverTable, "ulule/limiter, one rule", script)
		return ulule < c.number(serverTable, "ours: fixed-window", script) && ulule < 0.6*c.number(serverTable, redisRateOne, script)
	}},
	{"docs/compare.md", "little memory per key in process", func(c *cells) bool {
		return all(single, func(r string) bool {
			return c.number(keyTable, "throttled", keyBytes) < c.number(keyTable, "ours: "+r, keyBytes)
		})
	}},
	{"docs/compare.md", "a very fast check in process", func(c *cells) bool {
		return all(single, func(r string) bool {
			return c.number(processTable, "sethvargo/go-limiter", hotKey) < 0.6*c.number(processTable, "ours: "+r, hotKey)
		})
	}},
	{"docs/compare.md", "one bucket in one process: tiny, fast", func(c *cells) bool {
		return c.number(processTable, "x/time/rate in a sync.Map", hotKey) < 0.7*c.number(processTable, "ours: token-bucket", hotKey)
	}},
	{"docs/performance.md", "a limiter on `memstore` takes well under a microsecond and allocates nothing.", func(c *cells) bool {
		return all(append(single, "sliding-window and calendar"), func(r string) bool {
			return c.number(processTable, "ours: "+r, hotKey) < 700 && c.text(processTable, "ours: "+r, "allocations") == "0"
		})
	}},
	{"docs/performance.md", "a call takes one round trip and a few microseconds of the server, whatever the limit.", func(c *cells) bool {
		large := c.number(limitTable, "limit 100,000", script)
		return c.number(serverTable, "ours: the same, steady; refused by the latter", script) < 15 && between(0.75, large/c.number(limitTable, "limit 10", script), 2)
	}},
	{"docs/performance.md", "Another rule in the same call costs less than another call.", func(c *cells) bool {
		return all(single, func(r string) bool {
			return c.furtherRule(r) < 0.8*c.number(furtherTable, r, "1")
		})
	}},
	{"docs/performance.md", "costs the server less than an admitted one.", func(c *cells) bool {
		rows := []string{"token-bucket", "leaky-bucket", "fixed-window", "calendar", "sliding-window, filling"}
		return all(rows, func(r string) bool {
			return c.number(serverTable, "ours: "+r, "script, refused") < c.number(serverTable, "ours: "+r, script)
		})
	}},
	{"docs/performance.md", "costs the server about ten questions a second from each process.", func(c *cells) bool {
		return c.number("One subject that is refused", both, "scripts a second") < 20
	}},
	{"docs/performance.md", "Such a call takes less than a microsecond, and a busy key needs about ten scripts a second instead of one for each call.", func(c *cells) bool {
		const table, row = "One subject at up to 100,000", "token-bucket, lease=200ms"
		return c.number(table, row, "ns a call") < 1000 && c.number(table, row, "calls a second")*c.number(table, row, "scripts a call") < 20
	}},
	{"docs/performance.md", "Nearly all runs keep to that also if 2,000 waiting calls give up at once, or if 1,000 permits of one `concurrency` key are renewed.", func(c *cells) bool {
		return all([]string{
			"sliding-window: 2,000 calls wait, and all give up at once", "concurrency: 1,000 permits of one key are renewed, per=3s",
		}, func(r string) bool {
			return c.number(longestTable, r, "above 1 ms") <= 0.02*c.number(longestTable, r, "commands") // the machine interrupts some
		})
	}},
	{"docs/performance.md", "A call takes about 4 us for each of its rules. With 255 rules that is a millisecond.", func(c *cells) bool {
		return between(700, c.number(longestTable, "255 rules in one call", "longest"), 1500)
	}},
	{"docs/performance.md", "each 10,000 permits of a call take 0.6 ms. A call that takes 100,000 permits at once takes 6 ms.", func(c *cells) bool {
		const row = "sliding-window, limit 10,000 raised to 100,000: one call of 100,000, and its refund"
		return between(4500, c.number(longestTable, row, "longest"), 7500)
	}},
	{"docs/redis.md", "costs the server about twice as much, because it makes the parts of the script", func(c *cells) bool {
		const row = "ours: sliding-window, filling"
		return between(1.6, c.number(serverTable, row+", by EVALSHA", script)/c.number(serverTable, row, script), 2.4)
	}},
	{"docs/redis.md", "A sliding window takes about 10 bytes for each permit in it and 200 bytes for the key.", tenBytes},
	{"docs/algorithms.md", "about 10 bytes a permit on Redis, and", tenBytes},
	{"docs/redis.md", "The other algorithms take less than 200 bytes for a key,", func(c *cells) bool {
		return all([]string{"token-bucket", "leaky-bucket", "fixed-window", "calendar"}, func(r string) bool {
			return c.number(memoryTable, "ours: "+r, usage) < 200
		})
	}},
	{"docs/redis.md", "a sliding counter takes 8 bytes or a little more for each slice", func(c *cells) bool {
		return all([]string{"60", "100", "1,000", "10,000"}, func(r string) bool {
			return between(8, c.number("Memory of one subject's sliding-counter", r, "for a slice, beside 200"), 10)
		})
	}},
	{"docs/redis.md", "a limit of 1,000 and a million busy users is about 10 GB.", func(c *cells) bool {
		return between(9000, c.number(windowTable, "limit 1,000", "full"), 12000)
	}},
}

func tenBytes(c *cells) bool {
	return all([]string{"limit 10", "limit 100", "limit 1,000", "limit 10,000"}, func(r string) bool {
		return between(9, c.number(windowTable, r, "for a permit"), 12)
	}) && between(180, c.number(windowTable, "limit 10", "1 permit"), 230)
}

func between(low, x, high float64) bool { return low <= x && x <= high }

func all(rows []string, holds func(string) bool) bool {
	return !slices.ContainsFunc(rows, func(row string) bool { return !holds(row) })
}

// TestFigures compares the sentences of claims with the tables of README.md.
func TestFigures(t *testing.T) {
	tables := tablesOf(read(t, "README.md"))
	for _, claim := range claims {
		c := &cells{tables: tables}
		switch holds := claim.holds(c); {
		case c.err != nil:
			t.Errorf("%s: %q: %v", claim.page, claim.sentence, c.err)
		case !holds:
			t.Errorf("%s: change the sentence %q: the tables of benchmarks/README.md say something else", claim.page, claim.sentence)
		case !strings.Contains(joined(read(t, "../"+claim.page)), claim.sentence):
			t.Errorf("%s: %q is missing; write it again, or take it from the list of claims", claim.page, claim.sentence)
		}
	}
}

// TestSummary compares the sentences at the top of README.md with its tables.
func TestSummary(t *testing.T) {
	readme := read(t, "README.md")
	want, err := summary(tablesOf(readme))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(want, "\n"); n != 5 {
		t.Errorf("%d sentences; expected five", n)
	}
	if !strings.Contains(readme, "<!-- begin summary -->\n\n"+want+"\n<!-- end summary -->") {
		t.Errorf("the tables say:\n%s", want)
	}
}

// figure matches a time or a size that may be a measurement, and constants are those sentences in which it is none.
var (
	figure    = regexp.MustCompile(`\d (µs|ns|MB|GB)\b|\bmicroseconds?\b|\d×|\d times as`)
	constants = []string{
		"exact to the microsecond", "Times are whole microseconds", "A test of a daily limit takes microseconds",
	}
)

// TestEveryFigureIsAClaim looks for measurements in the prose of pages that no claim has.
func TestEveryFigureIsAClaim(t *testing.T) {
	pages, err := filepath.Glob("../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	readmes, err := filepath.Glob("../contrib/*/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(append(pages, readmes...), "../README.md") {
		for _, paragraph := range strings.Split(fenced.ReplaceAllString(read(t, page), ""), "\n\n") {
			for _, sentence := range strings.SplitAfter(joined(paragraph), ". ") {
				known := slices.ContainsFunc(constants, func(s string) bool { return strings.Contains(sentence, s) })
				for _, c := range claims {
					known = known || strings.Contains(sentence, c.sentence) || strings.Contains(c.sentence, strings.TrimSpace(sentence))
				}
				if figure.MatchString(sentence) && !known {
					t.Errorf("%s: %q looks like a measurement: add it to the list of claims, or to that of constants", page, strings.TrimSpace(sentence))
				}
			}
		}
	}
}

var fenced = regexp.MustCompile("(?ms)^```.*?^```$")

// joined puts a page on one line.
func joined(page string) string { return strings.Join(strings.Fields(page), " ") }

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
