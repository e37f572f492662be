package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/redisstore"
)

// env returns an environment with a server's URL and further variables, each a name and a value.
func env(url string, more ...string) func(string) string {
	all := map[string]string{"RATELIMIT_REDIS": url}
	for i := 0; i < len(more); i += 2 {
		all[more[i]] = more[i+1]
	}
	return func(name string) string { return all[name] }
}

// ctl runs the tool and returns its output and exit status.
func ctl(t *testing.T, addr string, args ...string) (string, int) {
	return ctlWith(t, env("redis://"+addr), "", args...)
}

// ctlWith is ctl with an environment and a standard input.
func ctlWith(t *testing.T, env func(string) string, in string, args ...string) (string, int) {
	var out bytes.Buffer
	status := run(t.Context(), args, env, strings.NewReader(in), &out, &out)
	return out.String(), status
}

func require(t *testing.T, addr string, status int, want string, args ...string) {
	t.Helper()
	if got, s := ctl(t, addr, args...); s != status || !strings.Contains(got, want) || status != done && strings.Count(got, "\n") != 1 {
		t.Errorf("%q: status %d, got %q; want status %d, %q", args, s, got, status, want)
	}
}

func TestCommands(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	declare(t, client, "ratelimit", `{"name":"login","key":"{user}","limit":5,"per":60000000000}`)
	l := ratelimit.New(redisstore.New(client, redisstore.WithTimeout(20*time.Second)))
	if _, err := l.Allow(t.Context(), ratelimit.Request{Rule: ratelimit.Rule{Name: "login", Limit: 5, Per: time.Minute}, Key: "ann"}); err != nil {
		t.Fatal(err)
	}
	_ = client.Close() // before the process reports
	const inForce = "\nno process reports now; those that start, or reach the server again, follow it\n"
	require(t, server.Addr, done, "login  5 per minute  -         {user}  enforce", "rules")
	require(t, server.Addr, done, "login  5 per minute  enforce  1 of 5  4", "inspect", "login", "ann")
	require(t, server.Addr, misuse, "counts by {user}: name a key", "inspect", "login")
	require(t, server.Addr, failed, `has used a rule "no\n"`, "inspect", "no\n")
	require(t, server.Addr, done, "login ann: not blocked → blocked until 20", "block", "login", "ann", "-for", "1h")
	require(t, server.Addr, done, "59m", "inspect", "login", "ann")
	require(t, server.Addr, done, "login ann: blocked until 20", "unblock", "login", "ann")
	require(t, server.Addr, done, "login: no override → limit=9 until 20", "override", "set", "login", "-limit", "9", "-for", "1d")
	require(t, server.Addr, done, "login  all  limit=9  20", "override", "list")
	require(t, server.Addr, done, `"limit": 9,`, "-json", "override", "list")
	require(t, server.Addr, done, "login  9 per minute  enforce  1 of 9  8", "inspect", "login", "ann")
	require(t, server.Addr, done, "declared 5 per minute, mode enforce", "inspect", "login", "ann")
	require(t, server.Addr, done, "→ limit=9 per=1h mode=shadow until 20", "override", "set", "login", "-per", "1h", "-mode", "shadow")
	require(t, server.Addr, done, inForce, "override", "set", "login", "-per", "1h", "-mode", "shadow")
	require(t, server.Addr, done, "9 per hour  shadow  0 of 9  9", "inspect", "login", "ann")
	require(t, server.Addr, done, "login: limit=9 per=1h mode=shadow until 20", "override", "clear", "login")
	require(t, server.Addr, done, " → no override\n", "override", "clear", "login")
	require(t, server.Addr, done, "1 count forgotten", "reset", "login", "ann")
	require(t, server.Addr, misuse, "unknown command \"forget\\n\"", "forget\n")
	require(t, server.Addr, misuse, "-for: expected how long", "block", "login", "ann")
	require(t, server.Addr, misuse, "changes: -n: found 0; expected how many changes, at least 1, as in -n 50", "changes", "-n", "0")
	require(t, server.Addr, misuse, "changes: -n: found -1; expected", "changes", "-n", "-1")
}

// The version needs no server.
func TestVersion(t *testing.T) { require(t, "nowhere:1", done, "ratelimitctl ", "-version") }

// TestMain runs as the tool itself for TestProgram.
func TestMain(m *testing.M) {
	if os.Getenv("BE_RATELIMITCTL") != "" {
		main()
	}
	redis.SetLogger(silent{})
	time.Local = time.UTC              // the zone on the pages
	_ = flag.Set("test.parallel", "6") // most tests wait
	os.Exit(m.Run())
}

// The program reads RATELIMIT_REDIS, prints no log messages of its Redis client, and ends on a signal.
func TestProgram(t *testing.T) {
	t.Parallel()
	program := func(url, command string) *exec.Cmd {
		c := exec.Command(os.Args[0], command)
		c.Env = append(os.Environ(), "BE_RATELIMITCTL=1", "RATELIMIT_REDIS="+url)
		return c
	}
	said, err := program("redis://127.0.0.1:1", "rules").CombinedOutput()
	text := string(said)
	isError := strings.HasPrefix(text, "ratelimitctl: ") && strings.Contains(text, "127.0.0.1:1") && strings.Count(text, "\n") == 1
	if !isError || err == nil {
		t.Errorf("error %v, got %s", err, text)
	}
	server := redistest.Start(t)
	newFleet(t, server.Addr).known(map[string]string{"r": `{"name":"r","limit":5,"per":60000000000}`})
	top := program("redis://"+server.Addr, "top")
	out, err := top.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := top.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if err := errors.Join(top.Process.Signal(syscall.SIGTERM), top.Wait()); err != nil || !strings.Contains(line, "prefix ratelimit") {
		t.Errorf("error %v, first line %q", err, line)
	}
}
