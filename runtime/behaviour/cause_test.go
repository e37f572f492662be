package behaviour_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/redistest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

type person struct{ Name string }

// directory has rules whose expressions fail for some arguments.
type directory interface {
	//ratelimit:rule name=nil key="{who.Name}" limit=5 per=1h
	byNil(ctx context.Context, who *person) error
	//ratelimit:rule name=index limit="5 + len(names[1])" per=1h
	byIndex(ctx context.Context, names []string) error
	//ratelimit:rule name=division limit="100 % n" per=1h
	byDivision(ctx context.Context, n int) error
	//ratelimit:rule name=key key="{lookUp(id)}" limit=5 per=1h
	byKey(ctx context.Context, id string) error
	//ratelimit:rule name=member distinct="{lookUp(id)}" limit=5 per=1h
	byMember(ctx context.Context, id string) error
	//ratelimit:rule name=when when="lookUp(id) == 'x'" limit=5 per=1h
	byCondition(ctx context.Context, id string) error
	//ratelimit:rule name=cost cost="numberOf(id)" limit=5 per=1h
	byCost(ctx context.Context, id string) error
	//ratelimit:rule name=limit limit="numberOf(id)" per=1h
	byLimit(ctx context.Context, id string) error
	//ratelimit:rule name=user key="{userID(ctx)}" limit=5 per=1h
	byUser(ctx context.Context) error
	//ratelimit:rule name=share limit="share * 10" per=1h
	byShare(ctx context.Context, share float64) error
	//ratelimit:rule name=anchor every=1mo anchor="since" limit=5
	bySince(ctx context.Context, since time.Time) error
	//ratelimit:rule name=contract every=1mo anchor="contractOf(id)" limit=5
	byContract(ctx context.Context, id string) error
	//ratelimit:rule name=text limit="int(text)" per=1h
	byText(ctx context.Context, text string) error
	//ratelimit:rule name=date every=1mo anchor="date(day)" limit=5
	byDate(ctx context.Context, day string) error
	//ratelimit:rule name=both every=1mo anchor="contractOf(id)" limit="numberOf(plan)"
	byBoth(ctx context.Context, id, plan string) error
}

type anyDirectory struct{ directory }

func (anyDirectory) byLimit(context.Context, string) error { return nil }

var errNoSuch = errors.New("no such")

func lookUp(id string) (string, error) {
	switch id {
	case "panics":
		var nobody *person
		return nobody.Name, nil
	case "internal":
		return "", fmt.Errorf("%w: no database", ratelimit.ErrInternal)
	case "unknown":
		return "", errNoSuch
	}
	return id, nil
}

func numberOf(id string) (n int64, err error) {
	if id, err = lookUp(id); err == nil {
		_, err = fmt.Sscan(id, &n)
	}
	return n, err
}

func contractOf(id string) (since time.Time, err error) {
	if id, err = lookUp(id); err == nil {
		since, err = time.Parse(time.DateOnly, id)
	}
	return since, err
}

// causes makes calls that fail for the causes on the page.
var causes = map[string][]func(context.Context, directory) error{
	"nil, an index out of range, or a division by zero in an expression": {
		func(ctx context.Context, d directory) error { return d.byNil(ctx, nil) },
		func(ctx context.Context, d directory) error { return d.byIndex(ctx, nil) },
		func(ctx context.Context, d directory) error { return d.byDivision(ctx, 0) },
	},
	"a function in `key=`, `distinct=`, `when=` or `cost=` returns an error": {
		func(ctx context.Context, d directory) error { return d.byKey(ctx, "unknown") },
		func(ctx context.Context, d directory) error { return d.byMember(ctx, "unknown") },
		func(ctx context.Context, d directory) error { return d.byCondition(ctx, "unknown") },
		func(ctx context.Context, d directory) error { return d.byCost(ctx, "unknown") },
	},
	"the key or member is empty or longer than 64 KiB, or the cost is below 0": {
		func(ctx context.Context, d directory) error { return d.byKey(ctx, "") },
		func(ctx context.Context, d directory) error { return d.byKey(ctx, strings.Repeat("x", 64<<10+1)) },
		func(ctx context.Context, d directory) error { return d.byMember(ctx, "") },
		func(ctx context.Context, d directory) error { return d.byCost(ctx, "-1") },
	},
	"the error of a function wraps `ratelimit.ErrInternal`": {
		func(ctx context.Context, d directory) error { return d.byKey(ctx, "internal") },
		func(ctx context.Context, d directory) error { return d.byMember(ctx, "internal") },
		func(ctx context.Context, d directory) error { return d.byCondition(ctx, "internal") },
		func(ctx context.Context, d directory) error { return d.byCost(ctx, "internal") },
	},
	"a function in `limit=` or `anchor=` returns an error": {
		func(ctx context.Context, d directory) error { return d.byLimit(ctx, "unknown") },
		func(ctx context.Context, d directory) error { return d.byContract(ctx, "unknown") },
		func(ctx context.Context, d directory) error { return d.byText(ctx, "five") },
		func(ctx context.Context, d directory) error { return d.byDate(ctx, "2026-13-05") },
	},
	"a limit that comes with the call is below -1 or too high": {
		func(ctx context.Context, d directory) error { return d.byLimit(ctx, "-2") },
		func(ctx context.Context, d directory) error { return d.byLimit(ctx, "1000000001") },
		func(ctx context.Context, d directory) error { return d.byShare(ctx, -0.5) },
	},
	"the anchor that comes with the call is the zero time, or not in the years 1 to 9999": {
		func(ctx context.Context, d directory) error { return d.bySince(ctx, time.Time{}) },
		func(ctx context.Context, d directory) error { return d.byContract(ctx, "0001-01-01") },
		func(ctx context.Context, d directory) error {
			return d.bySince(ctx, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))
		},
	},
	"a function panics": {
		func(ctx context.Context, d directory) error { return d.byKey(ctx, "panics") },
		func(ctx context.Context, d directory) error { return d.byMember(ctx, "panics") },
		func(ctx context.Context, d directory) error { return d.byCondition(ctx, "panics") },
		func(ctx context.Context, d directory) error { return d.byCost(ctx, "panics") },
		func(ctx context.Context, d directory) error { return d.byLimit(ctx, "panics") },
		func(ctx context.Context, d directory) error { return d.byContract(ctx, "panics") },
	},
	"the context carries no client IP or no user ID": {
		func(ctx context.Context, d directory) error { return d.byUser(ctx) },
	},
	"the cost is more than the rule can ever admit": {
		func(ctx context.Context, d directory) error { return d.byCost(ctx, "6") },
	},
	"a rule refuses": {
		func(ctx context.Context, d directory) error { return d.byLimit(ctx, "0") },
	},
}

// codes are the codes of gRPC by the status of HTTP. A test of the module grpclimit shows that it gives these.
var codes = map[string]string{"400": "InvalidArgument", "422": "FailedPrecondition", "429": "ResourceExhausted", "500": "Internal"}

// The table of causes on the page says what calls do: of generated code, down to the status and the log. What is logged is logged once for a rule,
// however often its calls fail.
func TestTableOfCauses(t *testing.T) {
	page, err := os.ReadFile("../../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| cause | error | `Internal` | HTTP | gRPC | logged |\n|---|---|---|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(strings.TrimSpace(table), "\n")
	if len(rows) != len(causes) {
		t.Errorf("the page has %d causes, and the test %d", len(rows), len(causes))
	}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		if len(cells) != 6 || causes[cells[0]] == nil {
			t.Errorf("the test does not know the row %s", row)
			continue
		}
		for i, call := range causes[cells[0]] {
			var log redistest.Log
			logger := slog.New(slog.NewTextHandler(&log, nil))
			before := slog.Default()
			slog.SetDefault(logger)
			limited := newLimitedDirectory(anyDirectory{}, ratelimit.New(memstore.New(), ratelimit.WithLogger(logger)))
			for range 2 {
				err = call(t.Context(), limited)
			}
			slog.SetDefault(before)
			e, _ := errors.AsType[*ratelimit.KeyError](err)
			got := []string{cells[0], "`" + strings.Replace(fmt.Sprintf("%T", err), "ratelimit.", "", 1) + "`", "no", fmt.Sprint(httplimit.Status(err)), "", "no"}
			if got[4] = "`" + codes[got[3]] + "`"; e != nil && e.Internal {
				got[2] = "yes"
			}
			of := slices.DeleteFunc(strings.Split(log.String(), "\n"), func(line string) bool {
				return !strings.Contains(line, "level=") || strings.Contains(line, "a far side asked for a pause") // in another test
			})
			if len(of) > 0 {
				_, logged, _ := strings.Cut(of[0], "level=")
				got[5], _, _ = strings.Cut(logged, " ")
			}
			if lines := len(of); strings.Join(got, " | ") != strings.Join(cells, " | ") || lines > 1 {
				t.Errorf("call %d:\ngot  %s\nwant %s\n%d lines are logged: %s\n%v", i, strings.Join(got, " | "), strings.Join(cells, " | "), lines, &log, err)
			}
		}
	}
}

// The line in the log about a limit or an anchor names the argument that failed, and no other, also if the cause is hidden.
func TestAdviceNamesTheArgument(t *testing.T) {
	for what, c := range map[string]struct {
		call        func(context.Context, directory) error
		right, none string
	}{
		"a limit":            {func(ctx context.Context, d directory) error { return d.byLimit(ctx, "unknown") }, "limit=", "anchor="},
		"a limit of a text":  {func(ctx context.Context, d directory) error { return d.byText(ctx, "five") }, "limit=", "anchor="},
		"an anchor":          {func(ctx context.Context, d directory) error { return d.byContract(ctx, "unknown") }, "anchor=", "limit="},
		"a date":             {func(ctx context.Context, d directory) error { return d.byDate(ctx, "2026-13-05") }, "anchor=", "limit="},
		"the limit of both":  {func(ctx context.Context, d directory) error { return d.byBoth(ctx, "2026-01-31", "x") }, "limit=", "anchor="},
		"the anchor of both": {func(ctx context.Context, d directory) error { return d.byBoth(ctx, "x", "5") }, "anchor=", "limit="},
	} {
		for _, options := range [][]ratelimit.Option{nil, {ratelimit.WithSubjectHash([]byte(strings.Repeat("s", 32)))}} {
			var log redistest.Log
			options = append(options, ratelimit.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			_ = c.call(t.Context(), newLimitedDirectory(anyDirectory{}, ratelimit.New(memstore.New(), options...)))
			if !strings.Contains(log.String(), "make "+c.right) || strings.Contains(log.String(), c.none) {
				t.Errorf("%s: logged %s", what, &log)
			}
		}
	}
}
