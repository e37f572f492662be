package simulate

import (
	"fmt"
	"strconv"
	"time"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// value is what a call brings for an argument of a rule, such as the text of its key.
type value struct {
	name     string                                   // the column that holds it for all rules
	argument string                                   // the argument of a directive
	of       func(r *Rule) string                     // the text of the argument; "" if the rule does not need the value
	set      func(c *wrap.Charge, field string) error // sets the value from a field that is not empty
}

// values are all values. That of when= comes first: if it is false, the rule does not apply to the call, and needs none of the others.
var values = []value{
	{"when", "when", func(r *Rule) string { return r.WhenExpr }, func(c *wrap.Charge, field string) error {
		applies, err := strconv.ParseBool(field)
		if err != nil {
			return fmt.Errorf("when is %q; expected true or false", field)
		}
		c.Skip = !applies
		return nil
	}},
	{"key", "key", func(r *Rule) string { return r.Key }, func(c *wrap.Charge, field string) error {
		c.Key = field
		return nil
	}},
	{"member", "distinct", func(r *Rule) string { return r.Distinct }, func(c *wrap.Charge, field string) error {
		c.Member = field
		return nil
	}},
	{"cost", "cost", func(r *Rule) string { return r.CostExpr }, func(c *wrap.Charge, field string) (err error) {
		if c.Cost, err = strconv.ParseInt(field, 10, 64); err != nil || c.Cost < 0 {
			err = fmt.Errorf("the cost is %q; expected an integer of at least 0", field)
		}
		return err
	}},
	{"limit", "limit", func(r *Rule) string { return r.LimitExpr }, func(c *wrap.Charge, field string) (err error) {
		if c.Limit, err = strconv.ParseInt(field, 10, 64); err != nil || c.Limit < ratelimit.NoLimit {
			err = fmt.Errorf("the limit is %q; expected an integer of at least 0, or -1 for no limit", field)
		}
		return err
	}},
	{"anchor", "anchor", func(r *Rule) string { return r.AnchorExpr }, func(c *wrap.Charge, field string) (err error) {
		if t, err := time.Parse(time.RFC3339, field); err == nil && t.IsZero() {
			return fmt.Errorf("the anchor is %q, which is the zero time; leave the field empty", field)
		}
		c.Anchor, err = parseTime("anchor", field, earliest)
		return err
	}},
}

// need is a value that a rule needs of each call.
type need struct {
	*value
	text   string // the text of the argument
	column int    // the index of the column that has the value, or -1
}

// needs returns what a rule needs. The name of a column is the text of the argument, or else that of the value. The rule may be nil.
func (c columns) needs(r *Rule) (all []need) {
	if r == nil {
		return nil
	}
	for i := range values {
		v := &values[i]
		if text := v.of(r); text != "" {
			all = append(all, need{v, text, c.index(text, v.name)})
		}
	}
	return all
}

// lacking says why a csv does not have what the rules of a pair need, or returns "". A column holds one value of a call, so it serves one text of an
// argument among all that the method needs.
func lacking(pair, method []need) string {
	for _, n := range pair {
		if n.column < 0 {
			return fmt.Sprintf("%s=%q needs a column %s or %[2]q", n.argument, n.text, n.name)
		}
		for _, other := range method {
			if other.value == n.value && other.column == n.column && other.text != n.text {
				return fmt.Sprintf("%s=%q and %[1]s=%[3]q need a column each, of these names", n.argument, n.text, other.text)
			}
		}
	}
	return ""
}
