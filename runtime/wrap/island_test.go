package wrap_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

type owner struct{ name string }

// label accepts nil, as getters of generated protocol buffers do.
func (o *owner) label() string {
	if o == nil {
		return ""
	}
	return o.name
}

// Whatever an island panics with, the call gets a *KeyError that names the expression. Only panics of functions are logged, each once.
func TestPanicsOfIslands(t *testing.T) {
	var none *owner
	var numbers []int
	zero, byAny := 0, map[any]string{}
	islands := map[string]struct {
		island func() string
		reason string
		logged bool
	}{
		"a field":       {func() string { return none.name }, "a part of it is nil", false},
		"in place":      {func() string { return func() string { return none.name }() }, "a part of it is nil", false},
		"a receiver":    {func() string { return wrap.NotNil(none).label() }, "a part of it is nil", false},
		"an interface":  {func() string { return wrap.NotNil(error(nil)).Error() }, "a part of it is nil", false},
		"an error":      {func() string { return wrap.Must("", io.ErrUnexpectedEOF) }, "unexpected EOF", false},
		"of a limit":    {func() string { return wrap.MustForLimit("", io.ErrUnexpectedEOF) }, "unexpected EOF", false},
		"ErrInternal":   {func() string { return wrap.Must("", ratelimit.ErrInternal) }, "internal error", false},
		"an identity":   {func() string { return wrap.Must(wrap.UserID(context.Background())) }, "the context carries no user ID", false},
		"no context":    {func() string { return wrap.Must(wrap.UserID(context.Context(nil))) }, "the context carries no user ID", false},
		"an index":      {func() string { return string(rune(numbers[3])) }, "index out of range [3] with length 0", false},
		"a key":         {func() string { return byAny[any(numbers)] }, "hash of unhashable type: []int", false},
		"in a closure":  {func() string { return wrap.Map([]*owner{nil}, func(_ int, o *owner) string { return o.name })[0] }, "a part of it is nil", false},
		"a division":    {func() string { return string(rune(1 / zero)) }, "integer divide by zero", false},
		"a function":    {func() string { return fault() }, "panic: runtime error: invalid memory address or nil pointer dereference", true},
		"its index":     {func() string { return faultyIndex(numbers) }, "panic: runtime error: index out of range [3] with length 0", true},
		"another value": {func() string { panic("why") }, "panic: why", true},
	}
	for what, c := range islands {
		t.Run(what, func(t *testing.T) {
			log := new(redistest.Log) // limiters of other tests may write to it, too
			defer slog.SetDefault(slog.Default())
			slog.SetDefault(slog.New(slog.NewJSONHandler(log, nil)))
			rules := wrap.NewRules("p.T.M", bucket)
			for range 2 {
				v, err := wrap.Value(rules, "x", c.island)
				e, ok := errors.AsType[*ratelimit.KeyError](err)
				if internal := c.logged || strings.Contains(c.reason, "carries no") || what == "of a limit" || what == "ErrInternal"; ok && e.Internal != internal {
					t.Errorf("Internal is %t", e.Internal)
				}
				if !ok || v != "" || e.Expr != "x" || e.Missing != strings.Contains(c.reason, "carries no") || !strings.HasSuffix(err.Error(), "x: "+c.reason) {
					t.Errorf("got %q, %v", v, err)
				}
			}
			if lines := strings.Count(log.String(), `"level":"ERROR"`); lines > 1 || (lines == 1) != c.logged {
				t.Errorf("logged %s", log)
			}
			if c.logged && !strings.Contains(log.String(), "island_test.go") {
				t.Errorf("logged %s", log)
			}
		})
	}
}

// An island without a panic has its value, and allocates nothing.
func TestValue(t *testing.T) {
	rules, o := wrap.NewRules("p.T.M", bucket), &owner{"ann"}
	rapid.Check(t, func(t *rapid.T) {
		o.name = rapid.String().Draw(t, "name")
		if v, err := wrap.Value(rules, "o", func() string { return wrap.NotNil(o).label() }); v != o.name || err != nil {
			t.Fatalf("got %q, %v", v, err)
		}
	})
	if n := testing.AllocsPerRun(100, func() {
		if _, err := wrap.Value(rules, "o", func() string { return wrap.NotNil(o).label() }); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A message that cannot be computed leaves the refusal as it is.
func TestMessage(t *testing.T) {
	rules := wrap.NewRules("p.T.M", bucket)
	if got := wrap.Message(rules, func() string { return wrap.Must("", io.EOF) }); got != "" {
		t.Errorf("got %q", got)
	}
	if got := wrap.Message(rules, func() string { return "later" }); got != "later" {
		t.Errorf("got %q", got)
	}
}
