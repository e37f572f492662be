package ratelimit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/engine"
	"github.com/ratelimit-go/ratelimit/internal/fleet"
	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/period"
)

// Override holds new values for the rules of one name: see [Overrides]. A field that is nil or zero leaves what is in force without it: an
// override of one key leaves what less exact ones say, and these leave what the rule declares: see [Overrides.Set]. An override to shadow or
// trigger mode also removes the rule's Wait, Queue, Block, Pausable and Lease.
//
// For example, a rule declares 100 permits a minute. With a Factor of 2 it has 200. With a Key "ann" and a Limit of 500, ann has 500 a
// minute, and everybody else has what they had. With a Match 203.0.113.0/24 and a Limit of 10, each address of this network has 10 a minute.
// With a Per of an hour it has 100 an hour. With ModeShadow the 101st call of a minute passes, and observers see a refusal. With an Until
// of 18:00 all of that ends at 18:00.
type Override struct {
	Key    string        // only for this key; "" means all keys of the rule
	Match  string        // only for keys in a network, such as 203.0.113.0/24, or that begin with a text, such as ann*. Not with Key
	Limit  *int64        // permits per window; 0 refuses everything. It also replaces a limit that depends on the call
	Factor float64       // multiplies the limit and the burst, rounded up; 0.001 to 1,000. Not with Limit. A key's Limit ends the factor of all keys
	Per    time.Duration // the window, for a rule with Per
	Burst  int64         // the capacity of a TokenBucket, in permits
	Mode   *Mode         // what happens when the rule refuses a call
	Until  time.Time     // when the override ends, by the store's clock; zero means never. A time.Now().Add(d) ends after d, whatever this clock says

	// These are only read: see [WithActor].

	By     string    // who set it
	Reason string    // why
	At     time.Time // when, by the store's clock
}

// Setting is an override in the store. For example, the Rule is "search", the Key "ann", and the Limit 500.
type Setting struct {
	Rule string // the rule's name, or a glob of names such as shop.*
	Override
}

const (
	minFactor = 0.001
	maxFactor = 1000
)

// check returns an error if no rule can have the values of v. It applies v to a rule of a kind that accepts all its fields.
func (v Override) check(name string) error {
	if err := checkNameOrGlob(name); err != nil {
		return err
	}
	rule := Rule{Name: name, Algorithm: FixedWindow, Limit: maxBucketLimit / maxFactor, Per: time.Minute}
	if v.Burst != 0 {
		rule.Algorithm = TokenBucket
	}
	limit := int64(0)
	if v.Limit != nil {
		limit = *v.Limit
	}
	return cmp.Or(
		rule.wrongIf(v.Limit == nil && v.Factor == 0 && v.Per == 0 && v.Burst == 0 && v.Mode == nil,
			"override", "found no change; expected limit, factor, per, burst or mode"),
		rule.wrongIf(v.Factor != 0 && !(v.Factor >= minFactor && v.Factor <= maxFactor),
			"factor", "found %g; expected %g to %d", v.Factor, minFactor, maxFactor),
		rule.wrongIf(limit == NoLimit, "limit", "found -1; expected 0 or more, or mode=shadow, which refuses no call"),
		rule.wrongIf(limit < 0 || limit > maxLimit, "limit", "found %d; expected 0 to %d", limit, int64(maxLimit)),
		rule.wrongIf(v.Factor != 0 && v.Limit != nil, "factor", "found limit as well; expected one of the two"),
		rule.wrongIf(len(v.Key) > decide.MaxText, "key", "found %d bytes; expected at most %d", len(v.Key), decide.MaxText),
		rule.wrongIf(v.Key != "" && v.Match != "", "match", "found key as well; expected one of the two"),
		v.apply(rule).checkValues(),
	)
}

// checkNameOrGlob returns an error if settings cannot name a rule so.
func checkNameOrGlob(name string) error {
	if err := fleet.CheckGlob(name); err != nil {
		return &RuleError{Rule: name, Argument: "name", Reason: err.Error()}
	}
	return Rule{Name: strings.TrimSuffix(name, "*")}.checkName()
}

// or returns v with the values of all where v has none.
func (v Override) or(all Override) Override {
	if v.Limit == nil {
		v.Limit, v.Factor = all.Limit, cmp.Or(v.Factor, all.Factor)
	}
	v.Per, v.Burst, v.Mode = cmp.Or(v.Per, all.Per), cmp.Or(v.Burst, all.Burst), cmp.Or(v.Mode, all.Mode)
	return v
}

// apply returns r with the values of v.
func (v Override) apply(r Rule) Rule {
	counts, computed := r.counting(), r.Computed // an override changes what counts only if it replaces the limits of calls
	if v.Limit != nil {
		r.Limit, r.Computed = *v.Limit, false
	}
	r.Limit, r.Burst = decide.Times(r.Limit, v.Factor), decide.Times(cmp.Or(v.Burst, r.Burst), v.Factor)
	if v.Limit != nil && !computed || v.Factor != 0 {
		r.Amounts, r.raised = counts == engine.Amounts, counts == engine.SlidingWindow && counts.At(r.Limit) != counts
	}
	r.Per = cmp.Or(v.Per, r.Per)
	if v.Mode != nil {
		if r.Mode = *v.Mode; r.Mode != ModeEnforce {
			r.Wait, r.Queue, r.Block, r.BlockMax, r.Pausable, r.Lease = 0, 0, 0, 0, false, 0
		}
	}
	return r
}

// overrideOf returns the override of a setting. That of nil is empty.
func overrideOf(s *fleet.Setting) (v Override, err error) {
	if s == nil {
		return v, nil
	}
	if err = v.read(s.Values); err == nil {
		if v.Key = key.Shown(s.Key); s.Match {
			v.Key, v.Match = "", s.Key
		}
		err = v.check(s.Rule)
	}
	return v, err
}

// overrideText is an Override as JSON.
type overrideText struct {
	Rule  string `json:"rule,omitempty"`
	Key   string `json:"key,omitempty"`
	Match string `json:"match,omitempty"`
	fleet.Values
}

// values returns the values as the store has them.
func (v Override) values() fleet.Values {
	text := fleet.Values{Limit: v.Limit, Factor: v.Factor, Burst: v.Burst, Until: v.Until, By: v.By, Reason: v.Reason, At: v.At}
	if v.Per != 0 {
		text.Per = period.Format(v.Per)
	}
	if v.Mode != nil {
		text.Mode = v.Mode.String()
	}
	return text
}

// read sets all but Key and Match.
func (v *Override) read(text fleet.Values) (err error) {
	*v = Override{
		Limit: text.Limit, Factor: text.Factor, Burst: text.Burst, Until: text.Until, By: text.By, Reason: text.Reason, At: text.At,
	}
	if text.Per != "" {
		if v.Per, _, err = period.Parse("per", text.Per); err != nil {
			return err
		}
	}
	if text.Mode == "" {
		return nil
	}
	for mode := range ModeTrigger + 1 {
		if mode.String() == text.Mode {
			v.Mode = &mode
			return nil
		}
	}
	return fmt.Errorf("mode: found %q; expected enforce, shadow or trigger", text.Mode)
}

// MarshalJSON returns a text such as {"key":"ann","limit":5,"per":"1m","mode":"shadow"}.
func (v Override) MarshalJSON() ([]byte, error) {
	return json.Marshal(overrideText{Key: v.Key, Match: v.Match, Values: v.values()})
}

// UnmarshalJSON reads the JSON of MarshalJSON. Per may be any duration of the directives, such as 1d. An unknown field is an error.
func (v *Override) UnmarshalJSON(b []byte) error {
	var s Setting
	if err := s.UnmarshalJSON(b); err != nil {
		return err
	}
	if s.Rule != "" {
		return fmt.Errorf("found the unknown field rule")
	}
	*v = s.Override
	return nil
}

// MarshalJSON returns a text such as {"rule":"sms","key":"ann","limit":5}.
func (s Setting) MarshalJSON() ([]byte, error) {
	return json.Marshal(overrideText{s.Rule, s.Key, s.Match, s.values()})
}

// UnmarshalJSON reads the JSON of MarshalJSON, as that of Override does.
func (s *Setting) UnmarshalJSON(b []byte) error {
	var text overrideText
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&text); err != nil {
		return err
	}
	err := s.read(text.Values)
	s.Rule, s.Key, s.Match = text.Rule, text.Key, text.Match
	return err
}
