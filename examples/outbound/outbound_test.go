package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// TestMain runs the example itself if a test has started this binary for that.
func TestMain(m *testing.M) {
	if os.Getenv("OUTBOUND_MAIN") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// check checks in the logs of all processes that they kept to the limit: at any time since the beginning, they had made at most one
// call every 50 ms. A call may be late, but never early.
func check(t *testing.T, log string, begin time.Time, expected int) {
	t.Helper()
	var made []time.Time
	for line := range strings.Lines(log) {
		at, _, _ := strings.Cut(line, "  ")
		when, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, when)
	}
	if len(made) != expected {
		t.Fatalf("%d calls were made; expected %d:\n%s", len(made), expected, log)
	}
	slices.SortFunc(made, time.Time.Compare)
	for i, at := range made {
		if earliest := begin.Add(time.Duration(i) * time.Second / 20); at.Before(earliest) {
			t.Errorf("call %d was made %s too early", i+1, earliest.Sub(at))
		}
	}
}

func TestInProcess(t *testing.T) {
	var out bytes.Buffer
	begin := time.Now()
	if err := ask(&out, ratelimit.New(memstore.New())); err != nil {
		t.Fatal(err)
	}
	check(t, out.String(), begin, workers*calls)
}

func TestTwoProcesses(t *testing.T) {
	server := redistest.Start(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var processes [2]*exec.Cmd
	var out, failed [2]bytes.Buffer
	begin := time.Now()
	for i := range processes {
		cmd := exec.CommandContext(t.Context(), self)
		cmd.Env = append(os.Environ(), "OUTBOUND_MAIN=1", "REDIS_URL=redis://"+server.Addr+"?read_timeout=1m")
		cmd.Stdout, cmd.Stderr = &out[i], &failed[i]
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		processes[i] = cmd
	}
	for i, cmd := range processes {
		if err := cmd.Wait(); err != nil {
			t.Errorf("process %d: %v\n%s", i, err, failed[i].String())
		}
	}
	check(t, out[0].String()+out[1].String(), begin, 2*workers*calls)
}

// TestTooLate expects that a call which would wait for more than a second is refused at once and not charged.
func TestTooLate(t *testing.T) {
	now := time.Now()
	limiter := ratelimit.New(memstore.New(memstore.WithClock(func() time.Time { return now })))
	client := NewLimitedClient(&Client{called: func(time.Time, string) {}}, limiter)

	const asked = 30 // the clock stands still: one turn is now, 20 come within a second
	refusals := make(chan error, asked)
	for range asked {
		go func() {
			_, err := client.Temperature(t.Context(), "Rome")
			refusals <- err
		}()
	}
	refused := 0
	for range asked {
		err := <-refusals
		if err == nil {
			continue
		}
		refused++
		refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
		if !ok || refusal.RetryAfter != 1050*time.Millisecond {
			t.Errorf("got %v; expected a refusal with a delay of 1.05s", err)
		}
	}
	if refused != asked-21 {
		t.Errorf("%d of %d calls were refused; expected %d", refused, asked, asked-21)
	}
}
