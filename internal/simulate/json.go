package simulate

import (
	"encoding/json"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/period"
)

// The fields as programs see them. Durations are in words, as directives spell them.
type (
	resultJSON struct {
		Load     string       `json:"load"`
		Start    time.Time    `json:"start"`
		Length   string       `json:"length"`
		Calls    int64        `json:"calls"`
		Admitted int64        `json:"admitted"`
		Waited   int64        `json:"waited,omitempty"` // of those admitted
		Longest  string       `json:"longestWait,omitempty"`
		Refused  int64        `json:"refused"`
		Rules    []ruleJSON   `json:"rules"`
		Timeline timelineJSON `json:"timeline"`
	}
	ruleJSON struct {
		Rule    string    `json:"rule"`
		All     keyJSON   `json:"all"`
		Ignored []string  `json:"notSimulated,omitempty"` // arguments
		Keys    []keyJSON `json:"keys"`                   // those that were refused; none if the rule has no key
	}
	keyJSON struct {
		Key          string `json:"key,omitempty"` // absent of all
		Calls        int64  `json:"calls"`
		Refused      int64  `json:"refused"`
		LongestDelay string `json:"longestRetryDelay"`
		Never        bool   `json:"never,omitempty"`
	}
	timelineJSON struct {
		Step     string    `json:"step"`
		Admitted []int64   `json:"admitted"`
		Waited   []int64   `json:"waited,omitempty"` // of those admitted
		Refused  []int64   `json:"refused"`
		Key      string    `json:"key"` // whose budget is left
		LeftStep string    `json:"leftStep"`
		Left     [][]int64 `json:"left"` // by rule
	}
)

// MarshalJSON writes all that the table and the picture show, and all keys that were refused.
func (r *Result) MarshalJSON() ([]byte, error) {
	t := r.Timeline
	out := resultJSON{
		Load: r.Load.Text, Start: r.Load.Start, Length: period.Format(r.Load.Length), Calls: r.Admitted + r.Refused,
		Admitted: r.Admitted, Waited: r.Waited, Refused: r.Refused,
		Timeline: timelineJSON{period.Format(t.Step), t.Admitted, t.Waited, t.Refused, t.Key, period.Format(t.LeftStep), t.Left},
	}
	if r.Waited > 0 {
		out.Longest = r.LongestWait.String()
	} else {
		out.Timeline.Waited = nil
	}
	for _, rule := range r.Rules {
		of := ruleJSON{rule.Rule.Text, rule.All.json(), rule.Rule.Ignored, []keyJSON{}}
		for _, k := range rule.Keys {
			of.Keys = append(of.Keys, k.json())
		}
		out.Rules = append(out.Rules, of)
	}
	return json.Marshal(out)
}

func (k KeyResult) json() keyJSON {
	return keyJSON{k.Key, k.Calls, k.Refused, k.LongestDelay.String(), k.Never}
}
