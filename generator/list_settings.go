package generator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/internal/fields"
	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// columns are the arguments that have fields of their own in a row, and message, which is not listed.
var columns = []string{"name", "key", "limit", "per", "cron", "algorithm", "message"}

// settings returns the other arguments that differ from their defaults. A value is an int64, true for a flag, or a string: a
// word, a duration, a template or an expression.
func settings(r *model.Rule) map[string]any {
	values := map[string]any{}
	for arg, value := range fields.Given(r.Declared) {
		if !slices.Contains(columns, arg.Name) {
			values[arg.Name] = shown(value.Interface())
		}
	}
	if most := r.Declared.BlockMax; most > 0 {
		values["block"] = period.Format(r.Declared.Block) + ".." + period.Format(most)
	}
	if r.Declared.TZ == "UTC" {
		delete(values, "tz")
	}
	if n := r.Rule.Cost.Int; n > 1 {
		values["cost"] = n
	}
	for _, name := range []string{"cost", "when", "settle", "pause", "hold"} {
		if text := r.Rule.Text(name); text != "" && (name != "cost" || !r.Rule.Cost.Expr.IsZero()) {
			values[name] = text
		}
	}
	return values
}

// shown returns the value of a field as a list shows it.
func shown(value any) any {
	switch value := value.(type) {
	case time.Duration:
		return period.Format(value)
	case string, int64, bool:
		return value
	}
	return fmt.Sprint(value)
}

// window returns the window of a rule as a list shows it: the cron expression or the duration alone. In keys, the window has more
// parts, which have columns of their own in a list.
func window(r ratelimit.Rule) string {
	if r.Cron != "" {
		return strings.Join(strings.Fields(r.Cron), " ")
	}
	if r.Per == 0 {
		_, length, _ := strings.Cut(r.Window(), ":")
		return length
	}
	return period.Format(r.Per)
}
