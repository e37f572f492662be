package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
)

// TestMain runs the example itself if it has started this binary as one of its processes.
func TestMain(m *testing.M) {
	if os.Getenv("OUTBOUND_FAR") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// short is the example in seconds instead of minutes.
var short = example{limit: 50, per: time.Second, windows: 6}

// check runs the example. The far side serves requests of all programs, and the limited ones ask in vain less often than the naive ones.
func check(t *testing.T) {
	t.Helper()
	e, out := short, bytes.Buffer{}
	e.picture = t.TempDir() + "/outbound.svg"
	if err := e.run(&out); err != nil {
		t.Fatal(err)
	}
	var careful, naive part
	var second, used, naiveUsed float64
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 4+e.windows+1 {
		t.Fatalf("printed:\n%s", &out)
	}
	for _, line := range lines[4 : 4+e.windows] {
		var one, other part
		const row = "%f %d %d %f %% %d %d %f %%"
		if _, err := fmt.Sscanf(strings.Join(strings.Fields(line), " "), row,
			&second, &one.served, &one.refused, &used, &other.served, &other.refused, &naiveUsed); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if one.served > e.limit || other.served > e.limit {
			t.Errorf("the far side exceeds its own limit: %s", line)
		}
		careful.served, careful.refused = careful.served+one.served, careful.refused+one.refused
		naive.refused += other.refused
	}
	if careful.served == 0 || careful.refused >= naive.refused {
		t.Errorf("printed:\n%s", &out)
	}
	if text, err := os.ReadFile(e.picture); err != nil || !strings.Contains(string(text), `class="refused"`) {
		t.Errorf("the picture: %v\n%s", err, text)
	}
}

func TestInOneProcess(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	check(t)
}

func TestThreeProcesses(t *testing.T) {
	server := redistest.Start(t)
	t.Setenv("REDIS_URL", "redis://"+server.Addr+"?read_timeout=1m")
	check(t)
}

// The far side serves its limit, and then tells the rest of its window.
func TestFar(t *testing.T) {
	side := &far{limit: 3, per: time.Hour, began: time.Now().Add(-3 * time.Hour)}
	for i := range 4 {
		w := httptest.NewRecorder()
		side.ServeHTTP(w, nil)
		want, retryAfter := http.StatusOK, ""
		if i == 3 {
			want, retryAfter = http.StatusTooManyRequests, "3600"
		}
		if w.Code != want || w.Header().Get("Retry-After") > retryAfter {
			t.Errorf("request %d: %d, %v", i, w.Code, w.Header())
		}
	}
}
