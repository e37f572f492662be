package annotations

import (
	"go/token"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/period"
)

var (
	integer  = regexp.MustCompile(`^-?(0|[1-9](_?[0-9])*)$`)
	integral = regexp.MustCompile(`^[+-]?[0-9][0-9_,]*[kM]?$`) // meant as an integer, but perhaps not valid
	rate     = regexp.MustCompile(`^[0-9_]+/[0-9]*[\pL]+$`)    // such as 10/m, which is not a useful expression

	months   = regexp.MustCompile(`^(mo|[0-9]*(M|MO|Mo|(?i:mon|months?|monthly)))$`) // meant in every=
	quarters = regexp.MustCompile(`^[0-9]*(?i:q|quarters?|quarterly)$`)              // likewise
)

// value reads the value of an argument that has no expressions.
func (p *parser) value(a *Argument, v Text) Value {
	value := Value{Argument: a, Text: v.Value}
	switch a.Kind {
	case DurationKind:
		value.Duration = p.parseDuration(a.Name, v)
	case RangeKind:
		value.Duration, value.Longest = p.parseRange(a, v)
	case PeriodKind:
		p.checkPeriod(a.Name, v)
	case CountKind:
		value.Count = p.parseCount(a.Name, v)
	case NameKind:
		p.checkName(a, v)
		if a.Name == "prefix" && strings.HasSuffix(v.Value, ".") {
			p.errorf(v.At(len(v.Value)-1), "prefix ends with a dot; leave the dot out, as it is added")
		}
	case IdentKind:
		if !token.IsIdentifier(v.Value) || v.Value == "_" {
			p.errorf(v.Pos, "%s is %q; expected %s", a.Name, v.Value, a.want())
		}
	case EnumKind:
		if !isOneOf(v.Value, a.words()) {
			p.unknown(a.Name, v, a.words())
		}
	}
	return value
}

// checkName adds an error about the first invalid character of a word.
func (p *parser) checkName(a *Argument, v Text) {
	for i, r := range v.Value {
		if !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9') && !strings.ContainsRune(punctuation, r) {
			p.errorf(v.At(i), "unexpected %q in %s; expected %s", r, a.Name, a.want())
			return
		}
	}
}

// parseInteger returns the decimal integer v.
func (p *parser) parseInteger(name string, v Text) (int64, bool) {
	if !integer.MatchString(v.Value) {
		p.errorf(v.Pos, "%s is %q; expected an integer such as 10 or 1_000", name, v.Value)
		return 0, false
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(v.Value, "_", ""), 10, 64)
	if err != nil { // after the match, only the range can be wrong
		p.errorf(v.Pos, "%s is %s, out of range; expected an integer of 64 bits", name, v.Value)
	}
	return n, err == nil
}

// parseCount reads an integer of at least 1. Zero stands for an absent argument.
func (p *parser) parseCount(name string, v Text) int64 {
	n, ok := p.parseInteger(name, v)
	if ok && n < 1 {
		p.errorf(v.Pos, "%s is %s; expected an integer of at least 1", name, v.Value)
	}
	return n
}

func (p *parser) parseAmount(name string, v Text) Amount {
	a := Amount{Pos: v.Pos}
	switch {
	case integral.MatchString(v.Value):
		a.Int, _ = p.parseInteger(name, v)
	case rate.MatchString(v.Value):
		p.errorf(v.Pos, "%s is %q; expected an integer or an expression, and the window as per=, such as per=1m", name, v.Value)
	default:
		a.Expr = p.parseExpr(name, v)
	}
	return a
}

// parseExpr adds an error if the expression is in braces, as it would be in a template. It would be a map, which is neither a
// condition nor an amount.
func (p *parser) parseExpr(name string, v Text) Expr {
	if t := strings.TrimSpace(v.Value); t[0] == '{' && t[len(t)-1] == '}' {
		p.errorf(v.Pos, "%s is %q; expected an expression without the braces, which are for text", name, v.Value)
		return Expr{}
	}
	if _, _, err := period.Parse(name, v.Value); name == "pause" && err == nil {
		p.errorf(v.Pos, "pause is %q, which would pause after every call; expected an expression, such as retryAfter(err)", v.Value)
		return Expr{}
	}
	if _, err := time.Parse(time.RFC3339, v.Value); name == "anchor" && err == nil {
		p.errorf(v.Pos, "anchor is %q; expected an expression, such as date('%[1]s')", v.Value)
		return Expr{}
	}
	return Expr{v}
}

// parseRange reads a duration, or two with .. between.
func (p *parser) parseRange(a *Argument, v Text) (shortest, longest time.Duration) {
	first, second, ranges := strings.Cut(v.Value, "..")
	if first == "" || ranges && second == "" {
		p.errorf(v.Pos, "%s is %q; expected %s", a.Name, v.Value, a.want())
		return 0, 0
	}
	shortest = p.parseDuration(a.Name, v.slice(0, len(first)))
	if ranges {
		longest = p.parseDuration(a.Name, v.slice(len(first+".."), len(v.Value)))
	}
	return shortest, longest
}

// parseDuration reads a duration. It suggests cron= for a value such as @daily.
func (p *parser) parseDuration(name string, v Text) time.Duration {
	if v.Value[0] == '@' {
		p.errorf(v.Pos, "%s is %q; expected %s, or write cron=%[2]s", name, v.Value, period.Want)
		return 0
	}
	d, at, err := period.Parse(name, v.Value)
	switch rest := v.Value[at:]; {
	case err == nil:
	case name == "per" && strings.HasPrefix(rest, "mo"):
		p.errorf(v.At(at), "%s; for calendar months write cron=@monthly, or every=1mo with anchor=", err)
	case name == "per" && strings.HasPrefix(rest, "y"):
		p.errorf(v.At(at), "%s; for calendar years write cron=@yearly, or every=1y with anchor=", err)
	default:
		p.errorf(v.At(at), "%s", err)
	}
	return d
}

// checkPeriod checks the length of windows that begin at a time of the key's own. It suggests per= for a duration, and cron= for a value such as
// @monthly. It knows other words for a month or a quarter.
func (p *parser) checkPeriod(name string, v Text) {
	_, err := period.ParseEvery(v.Value)
	if err == nil {
		return
	}
	advice := ""
	_, _, noDuration := period.Parse(name, v.Value)
	switch {
	case v.Value[0] == '@':
		advice = ", or write cron=" + v.Value
	case months.MatchString(v.Value):
		advice = "; a month is 1mo"
	case quarters.MatchString(v.Value):
		advice = "; a quarter is 3mo"
	case noDuration != nil:
	case strings.HasSuffix(v.Value, "m"):
		advice = "; a month is 1mo, and for minutes write per=" + v.Value
	default:
		advice = ", or write per=" + v.Value
	}
	p.errorf(v.Pos, "%s: %s%s", name, err, advice)
}
