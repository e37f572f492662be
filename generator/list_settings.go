package generator

import (
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Setting is an argument of a rule that is not what it is by default, beside those that have a field in [Rule].
type Setting struct {
	Name  string
	Value any // an int64, true for a flag, or else a string: a word, a duration, a template or an expression
}

// settings returns them in the order of the directives' documentation. A message limits nothing, and is not among them.
func settings(r *model.Rule) []Setting {
	var found []Setting
	text := func(name, value, absent string) {
		if value != absent {
			found = append(found, Setting{name, value})
		}
	}
	number := func(name string, value, absent int64) {
		if value != absent {
			found = append(found, Setting{name, value})
		}
	}
	duration := func(name string, d time.Duration) {
		if d != 0 {
			text(name, period.Format(d), "")
		}
	}
	limit := r.Limit
	text("mode", limit.Mode.String(), ratelimit.ModeEnforce.String())
	text("scope", limit.Scope.String(), ratelimit.ScopeFleet.String())
	if cost := r.Rule.Cost; !cost.Expr.IsZero() {
		text("cost", cost.Expr.Value, "")
	} else if cost.Pos.IsValid() {
		number("cost", cost.Int, 1)
	}
	text("distinct", limit.Distinct, "")
	text("when", r.Rule.When.Value, "")
	if limit.TZ != "UTC" {
		text("tz", limit.TZ, "")
	}
	number("burst", limit.Burst, 0)
	if limit.Prepay {
		found = append(found, Setting{"prepay", true})
	}
	duration("warmup", limit.Warmup)
	number("slices", limit.Slices, 0)
	duration("wait", limit.Wait)
	number("queue", limit.Queue, 0)
	duration("block", limit.Block)
	text("refund", limit.Refund.String(), ratelimit.RefundNever.String())
	text("on-error", limit.OnError.String(), "")
	return found
}

// window is how long permits count. What else stands in the window's part of keys has places of its own in a list.
func window(r ratelimit.Rule) string {
	if r.Cron != "" {
		return strings.Join(strings.Fields(r.Cron), " ")
	}
	return period.Format(r.Per)
}
