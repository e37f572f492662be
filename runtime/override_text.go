package ratelimit

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/ratelimit-go/ratelimit/internal/period"
)

// overrideText is an Override as JSON: what is left out stays as the rule says, and limit 0 and enforce mean just that.
type overrideText struct {
	Limit *int64 `json:"limit,omitempty"`
	Per   string `json:"per,omitempty"`
	Burst int64  `json:"burst,omitempty"`
	Mode  string `json:"mode,omitempty"`
}

// modes are the modes of an Override by the directives' words.
var modes = map[string]Mode{"": ModeEnforce, "enforce": ModeEnforceNow, "shadow": ModeShadow, "trigger": ModeTrigger}

// MarshalJSON returns a text such as {"limit":5,"per":"1m0s","mode":"shadow"}.
func (o Override) MarshalJSON() ([]byte, error) {
	text := overrideText{Burst: o.Burst}
	if o.Limit != 0 {
		limit := max(0, o.Limit)
		text.Limit = &limit
	}
	if o.Per != 0 {
		text.Per = o.Per.String()
	}
	for word, mode := range modes {
		if mode == o.Mode {
			text.Mode = word
		}
	}
	return json.Marshal(text)
}

// UnmarshalJSON reads what MarshalJSON writes, and the durations of directives, such as 1d. A name that it does not know is an
// error.
func (o *Override) UnmarshalJSON(data []byte) error {
	var text overrideText
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&text); err != nil {
		return err
	}
	mode, ok := modes[text.Mode]
	if !ok {
		return fmt.Errorf("mode: found %q; expected enforce, shadow or trigger", text.Mode)
	}
	*o = Override{Burst: text.Burst, Mode: mode}
	if text.Limit != nil {
		if o.Limit = *text.Limit; o.Limit == 0 {
			o.Limit = NoPermits
		} else if o.Limit < 0 {
			return fmt.Errorf("limit: found %d; expected 0 or more", o.Limit)
		}
	}
	if text.Per != "" {
		var err error
		if o.Per, _, err = period.Parse("per", text.Per); err != nil {
			return err
		}
	}
	return nil
}

// parseOverride reads an override from the store.
func parseOverride(ruleName, text string) (o Override, err error) {
	if err = json.Unmarshal([]byte(text), &o); err == nil {
		err = o.check(ruleName)
	}
	if err != nil {
		err = fmt.Errorf("override of rule %q in the store: %w", ruleName, err)
	}
	return o, err
}
