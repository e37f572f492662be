package ratelimit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/ratelimit-go/ratelimit/internal/period"
	"github.com/ratelimit-go/ratelimit/runtime/internal/engine"
)

// Override holds new values for the rules of one name: see [Overrides]. If a field is nil or zero, the rule keeps its own value. An override
// to shadow or trigger mode also removes the rule's Wait, Queue, Block and Lease.
//
// On Redis an override is a field of the hash <prefix>:overrides. The field is the rule's name, and the value is JSON:
// {"limit":2,"per":"1m","burst":5,"mode":"shadow","until":"2026-11-22T18:00:00Z","by":"ann","at":"…"}. You can set one by hand with HSET. An
// unknown field in the JSON is an error.
type Override struct {
	Limit *int64        // permits per window; 0 refuses everything. It also replaces a limit that depends on the call
	Per   time.Duration // the window, for a rule with Per
	Burst int64         // the capacity of a TokenBucket, in permits
	Mode  *Mode         // what happens when the rule refuses a call
	Until time.Time     // when the override ends, by this process's clock; zero means never
	By    string        // who set it, up to 200 bytes of UTF-8; nothing depends on it
	At    time.Time     // when it was set; nothing depends on it
}

const maxBy = 200

// check returns an error if no rule can have the values of v. It applies v to a rule of a kind that accepts all its fields.
func (v Override) check(name string) error {
	rule := Rule{Name: name, Algorithm: FixedWindow, Limit: maxBucketLimit, Per: time.Minute}
	if v.Burst != 0 {
		rule.Algorithm = TokenBucket
	}
	switch {
	case v.Limit == nil && v.Per == 0 && v.Burst == 0 && v.Mode == nil:
		return rule.wrong("override", "found no change; expected limit, per, burst or mode")
	case len(v.By) > maxBy || !utf8.ValidString(v.By):
		return rule.wrong("by", "found %d bytes; expected at most %d of UTF-8", len(v.By), maxBy)
	}
	return v.apply(rule).check()
}

func (v Override) hasEnded(now time.Time) bool { return !v.Until.IsZero() && !now.Before(v.Until) }

// apply returns r with the values of v.
func (v Override) apply(r Rule) Rule {
	if v.Limit != nil {
		counts := r.counting() // an override does not change that
		r.Limit, r.Amounts, r.raised = *v.Limit, counts == engine.Amounts, counts == engine.SlidingWindow && *v.Limit > maxTimes
	}
	if v.Per != 0 {
		r.Per = v.Per
	}
	if v.Burst != 0 {
		r.Burst = v.Burst
	}
	if v.Mode != nil {
		if r.Mode = *v.Mode; r.Mode != ModeEnforce {
			r.Wait, r.Queue, r.Block, r.Lease = 0, 0, 0, 0
		}
	}
	return r
}

// overrideText is an Override as JSON.
type overrideText struct {
	Limit *int64    `json:"limit,omitempty"`
	Per   string    `json:"per,omitempty"`
	Burst int64     `json:"burst,omitempty"`
	Mode  string    `json:"mode,omitempty"`
	Until time.Time `json:"until,omitzero"`
	By    string    `json:"by,omitempty"`
	At    time.Time `json:"at,omitzero"`
}

// MarshalJSON returns a text such as {"limit":5,"per":"1m","mode":"shadow"}.
func (v Override) MarshalJSON() ([]byte, error) {
	text := overrideText{Limit: v.Limit, Burst: v.Burst, Until: v.Until, By: v.By, At: v.At}
	if v.Per != 0 {
		text.Per = period.Format(v.Per)
	}
	if v.Mode != nil {
		text.Mode = v.Mode.String()
	}
	return json.Marshal(text)
}

// UnmarshalJSON reads the JSON of MarshalJSON. Per may be any duration of the directives, such as 1d. An unknown field is an error.
func (v *Override) UnmarshalJSON(b []byte) error {
	var text overrideText
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&text); err != nil {
		return err
	}
	*v = Override{Limit: text.Limit, Burst: text.Burst, Until: text.Until, By: text.By, At: text.At}
	if text.Per != "" {
		var err error
		if v.Per, _, err = period.Parse("per", text.Per); err != nil {
			return err
		}
	}
	if text.Mode == "" {
		return nil
	}
	if mode, ok := find(ModeTrigger, text.Mode, Mode.String); ok {
		v.Mode = &mode
		return nil
	}
	return fmt.Errorf("mode: found %q; expected enforce, shadow or trigger", text.Mode)
}

// parseOverride parses an override from the store.
func parseOverride(name, text string) (v Override, err error) {
	if err = decode(text, &v); err == nil {
		err = v.check(name)
	}
	if err != nil {
		err = malformed("override of rule", name, err)
	}
	return v, err
}
