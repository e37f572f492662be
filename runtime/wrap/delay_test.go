package wrap

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

// RetryAfter reads what package farside reads. A refusal by a rule of this program asks for nothing. What cannot be read is logged once for a field.
func TestRetryAfter(t *testing.T) {
	log := new(redistest.Log) // limiters of other tests may write to it, too
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	if got := RetryAfter(http.Header{"Retry-After": {"7"}}); got != 7*time.Second {
		t.Errorf("got %s", got)
	}
	refusal := &ratelimit.TooManyRequestsError{RetryAfter: time.Second}
	for _, x := range []any{refusal, fmt.Errorf("call: %w", refusal), http.Header{"Retry-After": {"soon"}}, http.Header{"Retry-After": {"later"}}, nil} {
		if got := RetryAfter(x); got != 0 {
			t.Errorf("%v: got %s", x, got)
		}
	}
	if text := log.String(); strings.Count(text, "could not be read") != 1 || !strings.Contains(text, "field=Retry-After value=soon") {
		t.Errorf("logged %s", text)
	}
}

// A duration that cannot be computed is 0. The first time is logged, without the text of the cause.
func TestDelay(t *testing.T) {
	log := new(redistest.Log) // limiters of other tests may write to it, too
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(log, nil)))
	ctx, rules := t.Context(), NewRules("p.T.M", ratelimit.Rule{Limit: 2, Per: time.Hour, Pausable: true})
	taken, err := Begin(ctx, rules.On(ratelimit.New(memstore.New())), rules, Charge{Cost: 1})
	if err != nil {
		t.Fatal(err)
	}
	if got := rules.Delay(ctx, taken, 0, "f()", func() time.Duration { return time.Second }); got != time.Second || strings.Contains(log.String(), "method=p.T.M") {
		t.Errorf("got %s, logged %s", got, log)
	}
	for range 2 {
		if got := rules.Delay(ctx, taken, 0, "f()", func() time.Duration { return Must(time.Second, errors.New("secret")) }); got != 0 {
			t.Errorf("got %s", got)
		}
	}
	if text := log.String(); strings.Count(text, "method=p.T.M expr=f()") != 1 || strings.Contains(text, "secret") {
		t.Errorf("logged %s", text)
	}
}

// A program that asks errors for delays links only the methods that it needs: with go-redis all of them would be 10 MB.
func TestRetryAfterLinksNoFurtherMethods(t *testing.T) {
	program := filepath.Join(t.TempDir(), "link")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/link").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	symbols, err := exec.Command("go", "tool", "nm", program).Output()
	if err != nil || !strings.Contains(string(symbols), "main.main") || strings.Contains(string(symbols), "main.failure.Unused") {
		t.Errorf("the program has a method that nothing calls, or no main: %v", err)
	}
}
