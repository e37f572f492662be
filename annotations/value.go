package annotations

import (
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	integer   = regexp.MustCompile(`^-?(0|[1-9](_?[0-9])*)$`)
	integral  = regexp.MustCompile(`^[+-]?[0-9][0-9_,]*[kM]?$`) // meant as an integer, but perhaps wrong
	rate      = regexp.MustCompile(`^[0-9_]+/[0-9]*[\pL]+$`)    // such as 10/m, which no expression is that gives an integer
	component = regexp.MustCompile(`^([0-9]*\.?[0-9]*)([^0-9.]*)`)
)

const wantDuration = "a duration above zero, such as 90s, 24h or 1d"

// parseInteger returns the decimal integer v.
func (p *parser) parseInteger(name string, v Text) (int64, bool) {
	if !integer.MatchString(v.Value) {
		p.add(v.Pos, "%s is %q; expected an integer such as 10 or 1_000", name, v.Value)
		return 0, false
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(v.Value, "_", ""), 10, 64)
	if err != nil { // all that is left to be wrong
		p.add(v.Pos, "%s is %s, out of range; expected an integer of 64 bits", name, v.Value)
	}
	return n, err == nil
}

// parseCount refuses zero, as that is how an absent argument reads.
func (p *parser) parseCount(name string, v Text) int64 {
	n, ok := p.parseInteger(name, v)
	if ok && n < 1 {
		p.add(v.Pos, "%s is %s; expected an integer of at least 1", name, v.Value)
	}
	return n
}

func (p *parser) parseAmount(name string, v Text) Amount {
	a := Amount{Pos: v.Pos}
	switch {
	case integral.MatchString(v.Value):
		a.Int, _ = p.parseInteger(name, v)
	case rate.MatchString(v.Value):
		p.add(v.Pos, "%s is %q; expected an integer or an expression, and the window as per=, such as per=1m", name, v.Value)
	default:
		a.Expr = p.parseExpr(name, v)
	}
	return a
}

// parseExpr refuses an expression in braces, as one stands in a template: a map is neither a condition nor an amount.
func (p *parser) parseExpr(name string, v Text) Expr {
	if t := strings.TrimSpace(v.Value); t[0] == '{' && t[len(t)-1] == '}' {
		p.add(v.Pos, "%s is %q; expected an expression without the braces, which are for text", name, v.Value)
		return Expr{}
	}
	return Expr{v}
}

var units = map[string]time.Duration{
	"ns": time.Nanosecond,
	"us": time.Microsecond,
	"µs": time.Microsecond, // U+00B5, the micro sign
	"μs": time.Microsecond, // U+03BC, the letter mu
	"ms": time.Millisecond,
	"s":  time.Second,
	"m":  time.Minute,
	"h":  time.Hour,
	"d":  24 * time.Hour,
	"w":  7 * 24 * time.Hour,
}

// parseDuration adds exactly; what is left below a nanosecond is dropped, as time.ParseDuration does.
func (p *parser) parseDuration(name string, v Text) time.Duration {
	sum := new(big.Rat)
	for i := 0; i < len(v.Value); {
		m := component.FindStringSubmatch(v.Value[i:])
		n, ok := new(big.Rat).SetString(m[1])
		unit, known := units[m[2]]
		switch {
		case !ok && v.Value[0] == '@':
			p.add(v.Pos, "%s is %q; expected %s, or write cron=%[2]s", name, v.Value, wantDuration)
			return 0
		case !ok:
			p.add(v.At(i), "%s is %q; expected %s", name, v.Value, wantDuration)
			return 0
		case m[2] == "":
			p.add(v.At(i), "%s is %q without a unit; expected %s", name, v.Value, wantDuration)
			return 0
		case !known && strings.TrimSpace(m[2]) != m[2]:
			p.add(v.At(i+len(m[1])), "unexpected space in %q; expected %s", v.Value, wantDuration)
			return 0
		case !known:
			p.add(v.At(i+len(m[1])), "unknown unit %q in %q; expected ns, us, ms, s, m, h, d or w", m[2], v.Value)
			return 0
		}
		sum.Add(sum, n.Mul(n, new(big.Rat).SetInt64(int64(unit))))
		i += len(m[0])
	}
	total := new(big.Int).Quo(sum.Num(), sum.Denom())
	switch {
	case !total.IsInt64():
		p.add(v.Pos, "%s is %q, out of range; expected at most 106751d", name, v.Value)
	case total.Sign() == 0:
		p.add(v.Pos, "%s is %q; expected %s", name, v.Value, wantDuration)
	default:
		return time.Duration(total.Int64())
	}
	return 0
}
