package emit

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/internal/period"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// phrases describes rules, one by one:
//
//	1 per minute per {phone}
func phrases(rules []*model.Rule) (all []string) {
	for _, r := range rules {
		all = append(all, phrase(r))
	}
	return all
}

// phrase describes a rule: its limit, window and subject, its condition, and other settings in parentheses:
//
//	1 per second per client IP, if !isAdmin(ctx) (bursts of 5)
func phrase(r *model.Rule) string {
	s := permits(r) + " " + window(r.Declared) + subject(r.Key)
	if !r.Rule.Anchor.IsZero() {
		s += ", counted from " + said(r.Rule.Anchor.Value)
	}
	if r.Declared.Limit == 0 && !r.Declared.Computed {
		s = "no calls"
	}
	if !r.Rule.When.IsZero() {
		s += ", if " + shortened(oneLine(r.Rule.When.Value))
	}
	if notes := notes(r); len(notes) > 0 {
		s += " (" + strings.Join(notes, ", ") + ")"
	}
	return s
}

// brief returns the name of a rule, or, if the directive has none, its limit and window:
//
//	1 per minute
func brief(r *model.Rule) string {
	said := r.Text("name")
	switch {
	case said != "":
	case r.Declared.Computed:
		said = window(r.Declared)
	default:
		said = strconv.FormatInt(r.Declared.Limit, 10) + " " + window(r.Declared)
	}
	return strings.ReplaceAll(said, unbroken, " ")
}

// permits returns the limit, as a number or an expression, and the members if the rule counts those:
//
//	10 different {to}
func permits(r *model.Rule) string {
	s := strconv.FormatInt(r.Declared.Limit, 10)
	if r.Declared.Computed {
		s = said(r.Limit.Expr.Value)
	}
	if r.Declared.Distinct != "" {
		s += " different " + islands(r.Rule.Distinct)
	}
	return s
}

// window describes the window of a rule:
//
//	per minute
func window(r ratelimit.Rule) string {
	if r.Releases() {
		return "at the same time"
	}
	if r.Cron == "" && r.Every == "" {
		return "per " + period.Word(period.Format(r.Per))
	}
	zone := cmp.Or(r.TZ, "UTC")
	if every, err := period.ParseEvery(r.Every); err == nil {
		return "per " + every.Words() + " (" + zone + ")"
	}
	if name := period.Calendar(strings.Join(strings.Fields(r.Cron), " ")); name != "" {
		return "per " + name + " (" + zone + ")"
	}
	return fmt.Sprintf("between the times of %s (%s)", oneLine(strconv.Quote(r.Cron)), zone)
}

// subject describes the subject of a key, after a space:
//
//	per {phone}
func subject(key annotations.Template) string {
	if of := islands(key); of != "" {
		return " per " + of
	}
	return ""
}

// islands returns the expressions of a template in words:
//
//	{tenant} and user ID
func islands(t annotations.Template) string {
	var found []string
	for _, p := range t.Parts {
		if !p.Island.IsZero() {
			found = append(found, said(p.Island.Value))
		}
	}
	return strings.Join(found, " and ")
}

// said returns an expression in a sentence:
//
//	{phone}
func said(expression string) string {
	text := oneLine(expression)
	if spoken := expr.Spoken(text); spoken != text {
		return strings.ReplaceAll(spoken, " ", unbroken)
	}
	return "{" + shortened(text) + "}"
}

// shortened cuts a text that is too long for a sentence.
func shortened(s string) string {
	const longest = 60
	if utf8.RuneCountInString(s) <= longest {
		return s
	}
	return string([]rune(s)[:longest-1]) + "…"
}

// notes describes the settings of a rule other than its limit, window, subject and condition:
//
//	waits up to 2s
func notes(rule *model.Rule) []string {
	r, notes := rule.Declared, []string(nil)
	note := func(given bool, format string, args ...any) {
		if given {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	cost := rule.Rule.Cost
	note(!cost.Expr.IsZero(), "a call costs %s", said(cost.Expr.Value))
	note(cost.Expr.IsZero() && cost.Pos.IsValid() && cost.Int != 1, "a call costs %d", cost.Int)
	note(!rule.Rule.Settle.IsZero(), "settled to %s", said(rule.Rule.Settle.Value))
	note(!rule.Hold.IsZero(), "until %s has ended", rule.Hold.Value)
	note(r.Algorithm == ratelimit.FixedWindow, "fixed window")
	note(r.Algorithm == ratelimit.LeakyBucket, "evenly spaced")
	note(r.Burst > 0 && r.Burst != r.Limit, "bursts of %d", r.Burst)
	note(r.Slices > 0, "counted in %d slices", r.Slices)
	note(r.Prepay, "a call may go into debt")
	note(r.Warmup > 0, "the rate rises over %s", period.Format(r.Warmup))
	note(r.Wait > 0, "waits up to %s", period.Format(r.Wait))
	note(r.Queue > 0 && !cost.Pos.IsValid(), "at most %d wait", r.Queue)
	note(r.Queue > 0 && cost.Pos.IsValid(), "at most %d permits are waited for", r.Queue)
	note(r.Block > 0 && r.BlockMax == 0, "then blocked for %s", period.Format(r.Block))
	note(r.BlockMax > 0, "then blocked for %s, each time twice as long, up to %s", period.Format(r.Block), period.Format(r.BlockMax))
	note(r.Pausable, "paused for %s after a call", said(rule.Rule.Pause.Value))
	note(r.Mode == ratelimit.ModeShadow, "only reported")
	note(r.Mode == ratelimit.ModeTrigger, "only a trigger")
	note(r.Scope == ratelimit.ScopeInstance, "counted in each process")
	note(r.Refund == ratelimit.RefundError, "given back on an error")
	if r.Scope == ratelimit.ScopeInstance {
		return notes // it needs no store
	}
	policy := rule.Text("on-error") // only if the rule itself has it, not if it inherits it from wrap
	note(policy == "deny", "refused while the store fails")
	note(policy == "allow", "allowed while the store fails")
	note(policy == "local", "counted in each process while the store fails")
	return notes
}
