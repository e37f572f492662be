package cron

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// TestWraps compares ranges that go on after the end of their field with the same values one by one.
func TestWraps(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 600 {
		at := random.IntN(len(allFields))
		f := allFields[at]
		low, high, step := f.first+random.IntN(f.size), f.first+random.IntN(f.size), 1+random.IntN(3)
		text := func(n int) string {
			if f.names != nil && random.IntN(2) == 0 {
				return strings.ToUpper(f.names[n-f.first])
			}
			return fmt.Sprint(n)
		}
		item := text(low) + "-" + text(high)
		if step > 1 {
			item += fmt.Sprintf("/%d", step)
		}
		var values []string
		for n := 0; n <= (high-low+f.size)%f.size; n += step {
			values = append(values, fmt.Sprint(f.first+(low-f.first+n)%f.size))
		}
		sameSchedule(t, at, item, strings.Join(values, ","))
	}
	for item, same := range map[string]string{
		"7": "0", "SUN-7": "0-6", "5-7": "5,6,0", "FRI-SUN": "5,6,0", "1-7/2": "1,3,5,0", "7-2": "0,1,2", "3,7": "3,0", "0-7": "0-6", "7-7": "0", "*/2": "0-6/2", "2/3": "2-6/3",
	} {
		sameSchedule(t, 5, item, same)
	}
}

func sameSchedule(t *testing.T, field int, item, same string) {
	t.Helper()
	with := func(item string) string {
		fields := strings.Fields("0 0 0 * * *")
		if field < 3 {
			fields = strings.Fields("* * * * * *")
		}
		fields[field] = item
		return strings.Join(fields, " ")
	}
	got, err := parse(strings.Fields(with(item)))
	want, wrong := parser.Parse(with(same))
	if err != nil || wrong != nil {
		t.Errorf("%s: %v; %s: %v", with(item), err, with(same), wrong)
		return
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for range 40 {
		if g, w := got.Next(at), want.Next(at); !g.Equal(w) {
			t.Errorf("%s fires at %v, %s at %v", with(item), g, with(same), w)
			return
		}
		at = want.Next(at)
	}
}

// TestAdvice expects that what other schedulers have is refused with what to write instead.
func TestAdvice(t *testing.T) {
	for expr, want := range map[string]string{
		"0 0 0 L * *":          `found "L"; the last day of a month cannot be written; with the day 1, windows end when a month does`,
		"0 0 0 15W * *":        "expected the day itself, such as 15",
		"0 0 * * 5L":           "the last of a weekday cannot be written",
		"0 0 * * FRI#2":        "expected a day of the week, such as FRI",
		"0 0 12 * * ? 2027":    `leave out the year: "0 0 12 * * ?"`,
		"0 0 * * 8":            "end of range (8) above maximum (6)",
		"0 0 * * 5-9":          "end of range (9) above maximum (6)",
		"0 25-3 * * *":         "beginning of range (25) beyond end of range (3)",
		"0 0 * * MONDAY":       `found "MONDAY"; expected numbers`,
		"0 0 0 * * FRI-SUNN":   `found "SUNN"`,
		"0 0 1-0 * *":          "beginning of range (1) beyond end of range (0)",
		"@daily 0 0 0 0 0 0 0": "found 8 fields; expected 5, or 6 with seconds",
	} {
		_, _, err := Parse(expr)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; expected %s", expr, err, want)
		}
	}
}
