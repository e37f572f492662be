package rulelist

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/internal/fields"
	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// columns are the arguments that have fields of their own in a row, and message, which is not listed.
var columns = []string{"name", "key", "limit", "per", "cron", "every", "algorithm", "message"}

// Of returns the row of a rule, without where it stands. A limit that calls bring has the expression "computed".
func Of(r ratelimit.Rule) Row {
	row := Row{Rule: r.Name, Key: r.Key, Limit: &r.Limit, Window: window(r), Algorithm: r.Algorithm.String(), Settings: map[string]any{}}
	if r.Computed {
		row.Limit, row.LimitExpr = nil, "computed"
	}
	if r.Cron != "" || r.Every != "" {
		row.Algorithm = ratelimit.Calendar.String()
	}
	for arg, value := range fields.Given(r) {
		if !slices.Contains(columns, arg.Name) {
			row.Settings[arg.Name] = shown(arg, value.Interface())
		}
	}
	if r.BlockMax > 0 {
		row.Settings["block"] = period.Format(r.Block) + ".." + period.Format(r.BlockMax)
	}
	if r.TZ == "UTC" {
		delete(row.Settings, "tz")
	}
	return row
}

// shown returns the value of a field as a list shows it: an int64, true for a flag, or a string.
func shown(arg *annotations.Argument, value any) any {
	switch value := value.(type) {
	case time.Duration:
		return period.Format(value)
	case bool:
		if arg.Kind == annotations.EnumKind {
			return arg.Words[1].Text
		}
		return value
	case string, int64:
		return value
	}
	return fmt.Sprint(value)
}

// window returns the window of a rule as a list shows it: the cron expression, the period or the duration alone. In keys, the window has more
// parts, which have columns of their own in a list.
func window(r ratelimit.Rule) string {
	switch {
	case r.Cron != "":
		return strings.Join(strings.Fields(r.Cron), " ")
	case r.Every != "":
		return r.Every
	case r.Per == 0:
		_, length, _ := strings.Cut(r.Window(), ":")
		return length
	}
	return period.Format(r.Per)
}
