package main

import (
	"context"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// TestPages runs the commands on the pages, on a server that a shop uses. The output must be that of the page, except times and sizes.
func TestPages(t *testing.T) {
	t.Parallel()
	for name, policy := range map[string]string{"ratelimitctl": "allkeys-lru", "operating": "noeviction"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", policy, "--slowlog-log-slower-than", "1000000")
			openShop(t, server)
			page := filepath.Join("../../docs", name+".md")
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			ran := 0
			got := shownRun.ReplaceAllStringFunc(string(text), func(block string) string {
				ran++
				return "```text\n" + replay(t, server, block) + "```"
			})
			if ran == 0 {
				t.Errorf("%s shows no run", page)
			}
			if *update {
				if err := os.WriteFile(page, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			shown, now := strings.Split(settled(string(text)), "\n"), strings.Split(settled(got), "\n")
			if len(shown) != len(now) && !*update {
				t.Errorf("%s has %d lines, and with the output of the tool %d", page, len(shown), len(now))
			}
			for i := range min(len(shown), len(now)) {
				if shown[i] != now[i] && !*update {
					t.Errorf("%s has\n%s\nbut the tool prints\n%s\nrun \"go test -update\" if this is right", page, shown[i], now[i])
				}
			}
		})
	}
}

var (
	shownRun = regexp.MustCompile("(?s)```text\n\\$ (?:ratelimitctl|redis-cli) .*?```")
	prompt   = regexp.MustCompile(`(?m)^\$ (ratelimitctl|redis-cli) (.*)$`)
)

// replay runs the commands of a block, and returns them with their output.
func replay(t *testing.T, server *redistest.Server, block string) string {
	var b strings.Builder
	for i, m := range prompt.FindAllStringSubmatch(block, -1) {
		if i > 0 {
			b.WriteString("\n")
		}
		if m[1] == "redis-cli" {
			b.WriteString(m[0] + "\n" + server.Do(m[2]) + "\n")
			continue
		}
		line, wanted, _ := strings.Cut(m[2], " | grep ")
		args, in := commandLine(t, server, line)
		text, _ := ctlWith(t, env("redis://"+server.Addr), in, args...)
		b.WriteString(m[0] + "\n")
		for line := range strings.Lines(text) {
			if strings.Contains(line, wanted) {
				b.WriteString(line)
			}
		}
	}
	return b.String()
}

// word matches a word of a command line, or a quoted text.
var word = regexp.MustCompile(`"[^"]*"|\S+`)

// commandLine returns the arguments and the standard input of a command on a page. Some names of files stand for files that the pages describe.
func commandLine(t *testing.T, server *redistest.Server, line string) (args []string, in string) {
	line, from, _ := strings.Cut(line, " < ")
	switch from {
	case "keys.txt":
		in = "mallory\ntrudy\n"
	case "settings.json":
		if server == nil {
			break
		}
		in, _ = ctl(t, server.Addr, "settings", "export")
	}
	for _, arg := range word.FindAllString(line, -1) {
		if arg == "rules.json" {
			arg = listFile(t)
		}
		args = append(args, strings.Trim(arg, `"`))
	}
	return args, in
}

// The pages show each command, and name each flag.
func TestPageIsComplete(t *testing.T) {
	var text []byte
	for _, page := range []string{"ratelimitctl", "console"} {
		more, err := os.ReadFile("../../docs/" + page + ".md")
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, more...)
	}
	flags := common
	for _, c := range commands {
		flags += " " + c.flags
		if !strings.Contains(string(text), "ratelimitctl "+c.name) {
			t.Errorf("the page does not show %s", c.name)
		}
	}
	for _, name := range strings.Fields(flags) {
		if !regexp.MustCompile(`[ ` + "`" + `(]-` + name + `\b`).Match(text) {
			t.Errorf("the page does not name -%s", name)
		}
	}
	for _, m := range prompt.FindAllStringSubmatch(string(text), -1) {
		args, _ := commandLine(t, nil, m[2])
		if _, err := new(input).parse(args); m[1] == "ratelimitctl" && err != nil {
			t.Errorf("%s: %v", m[0], err)
		}
	}
}

// varying has patterns of what differs between two runs.
var varying = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\b(\d{4}-\d\d-\d\d[ T])?\d\d:\d\d:\d\d(\.\d+)?(Z| [A-Z]+)?\b`), "TIME"}, // at midnight, times of yesterday have a day
	{regexp.MustCompile(regexp.QuoteMeta(hostname()) + ` +\d+ `), "HOST  PID "},
	{regexp.MustCompile(`\d+s ago|just now`), "AGO"},
	{regexp.MustCompile(`\bdevel-[0-9a-f]+`), "BUILD"},
	{regexp.MustCompile(`\d+ % of \d+ calls`), "MOST calls"},
	{regexp.MustCompile(`-?\d+ keys? and -?[0-9.]+ .B`), "GROWTH"},
	{regexp.MustCompile(`median \S+, 99% \S+, longest \S+ of \d+`), "TRIPS"},
	{regexp.MustCompile(`\b(\d+h)?(\d+m)?\d+(\.\d+)?(ms|s)\b`), "DURATION"},
	{regexp.MustCompile(`\broot\b|\b` + regexp.QuoteMeta(username()) + `\b`), "WHO"},
	{regexp.MustCompile(`(Redis|Valkey) [0-9.]+`), "VERSION"},
	{regexp.MustCompile(`\d+ bytes`), "BYTES"},
	{regexp.MustCompile(`\d+\.\d+`), "NUMBER"},
	{regexp.MustCompile(`  +`), "  "},
}

func hostname() string {
	name, _ := os.Hostname()
	return name
}

func username() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "-"
}

func settled(text string) string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.by)
	}
	return text
}

// openShop starts two processes, whose limits the pages show. One of them runs until the test ends, and publishes statistics.
func openShop(t *testing.T, server *redistest.Server) {
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	ctx, end := context.WithCancel(t.Context())
	quiet := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(20*time.Second)))
	shop := ratelimit.New(redisstore.New(client, redisstore.WithStats(), redisstore.WithTimeout(20*time.Second)))
	login := ratelimit.Rule{Name: "login", Key: "{user}", Limit: 5, Per: time.Hour}
	exports := ratelimit.Rule{Name: "exports", Key: "{user}", Limit: 2, Per: time.Hour, Mode: ratelimit.ModeShadow}
	carrier := ratelimit.Rule{Name: "carrier", Limit: 6, Per: time.Hour, Algorithm: ratelimit.LeakyBucket}
	codes := wrap.NewRules("shop.Sender.SendCode",
		ratelimit.Rule{Key: "{phone}", Limit: 1, Per: time.Hour}, ratelimit.Rule{Key: "{clientIP(ctx)}", Limit: 100, Per: time.Hour})
	f := &program{quiet, client, t}
	f.allow(6, login, "ann")
	f.allow(1, carrier, "")
	giveUp := f.wait(3, carrier, "")
	for _, phone := range []string{"5550100", "5550101"} {
		if err := wrap.Take(ctx, codes.On(quiet), codes, phone, "192.0.2.1"); err != nil {
			t.Fatal(err)
		}
	}
	traffic := make(chan struct{})
	go func() {
		defer close(traffic)
		for i := 0; ctx.Err() == nil; i++ {
			_, _ = shop.Allow(ctx, ratelimit.Request{Rule: login, Key: "eve"})
			if i%3 == 0 {
				_, _ = shop.Allow(ctx, ratelimit.Request{Rule: exports, Key: "bob"})
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	t.Cleanup(func() {
		end()
		<-traffic
		for _, give := range giveUp {
			give()
		}
		_ = client.Close()
	})
	redistest.Eventually(t, "the shop tells of its rules and decisions", func() bool {
		rules, _ := ctl(t, server.Addr, "rules")
		top, _ := ctl(t, server.Addr, "top", "-once")
		return strings.Count(rules, "\n") == 6 && strings.Contains(top, "exports") && strings.Contains(top, "2 processes")
	})
}

// listFile writes a file with a rule that nobody has used.
func listFile(t *testing.T) string {
	file := filepath.Join(t.TempDir(), "rules.json")
	list := `[{"file":"reports.go","line":9,"method":"shop.Reports.Send","rule":"reports","key":"{user}","limit":10,"window":"@daily","algorithm":"calendar"}]`
	if err := os.WriteFile(file, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
