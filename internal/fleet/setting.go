package fleet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/key"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// Kind is what a setting does.
type Kind string

// The kinds of settings. Those of one rule and key do not replace each other.
const (
	Override Kind = "override"
	Block    Kind = "block"
	Pause    Kind = "pause"
)

// Setting changes what holds for a rule, or for one key of it.
type Setting struct {
	Kind    Kind   `json:"-"`
	Rule    string `json:"-"`
	Key     string `json:"-"` // the subject, in the form of keys; with Match a pattern of keys
	Match   bool   `json:"-"` // the setting is for all keys that Key matches: see ParseMatch
	AllKeys bool   `json:"-"` // the setting is for all keys of the rule; Key is ""
	Values
	Cleared bool `json:"cleared,omitempty"` // nothing is set any more

	version int64
	lost    bool // the store has lost it
}

// SettingName returns the name by which settings name a rule. It is one for all unnamed rules of a method, such as pkg.Type.Method#2. No rule with
// a name of its own ends with such a number.
func SettingName(rule string) string {
	if method, number, _ := strings.Cut(rule, "#"); number != "" && strings.Trim(number, "0123456789") == "" {
		return method
	}
	return rule
}

// Values are what a setting sets. Durations are as in directives.
type Values struct {
	Limit  *int64    `json:"limit,omitempty"`
	Factor float64   `json:"factor,omitempty"`
	Per    string    `json:"per,omitempty"`
	Burst  int64     `json:"burst,omitempty"`
	Mode   string    `json:"mode,omitempty"`
	Until  time.Time `json:"until,omitzero"` // when it ends, by the store's clock; zero means never
	By     string    `json:"by,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero"` // when it was made, by the store's clock
}

// Arguments returns what an override changes, by the names of a directive's arguments.
func (v *Values) Arguments() iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		_ = (v.Limit == nil || yield("limit", *v.Limit)) &&
			(v.Factor == 0 || yield("factor", v.Factor)) &&
			(v.Per == "" || yield("per", v.Per)) &&
			(v.Burst == 0 || yield("burst", v.Burst)) &&
			(v.Mode == "" || yield("mode", v.Mode))
	}
}

// Name returns the name of the setting in the store. Neither a rule's name nor a subject has a brace. The kind of a setting by pattern has a *, and
// so has the end of a pattern of keys: block:login:{ann}, block*:shop.*:{ann}, block*:login:{203.0.113.0/24}*. Older programs know no such kind.
func (s *Setting) Name() string {
	name := string(s.Kind) + ":" + s.Rule
	if s.byPattern() {
		name = string(s.Kind) + "*:" + s.Rule
	}
	if !s.AllKeys {
		name += ":{" + s.Key + "}"
	}
	if s.Match {
		name += "*"
	}
	return name
}

// Compare orders settings by kind, rule, and key as errors show it. Patterns come after the key with the same text.
func Compare(a, b *Setting) int {
	order := cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Rule, b.Rule), cmp.Compare(key.Shown(a.Key), key.Shown(b.Key)))
	if order == 0 && a.Match != b.Match {
		return cmp.Compare(a.Name(), b.Name())
	}
	return order
}

// EndedAt reports whether the setting has ended, at a time by the store's clock. An end that was computed from time.Now is by this process's
// clock.
func (s *Setting) EndedAt(now time.Time) bool {
	if s.Until != s.Until.Round(0) {
		now = time.Now()
	}
	return !s.Until.IsZero() && !now.Before(s.Until)
}

// holds reports whether the setting is in force.
func (s *Setting) holds(now time.Time) bool { return !s.Cleared && !s.EndedAt(now) }

// never is later than the end of any setting.
var never = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)

// end returns when the setting ends, or when it was cleared. If neither is so, that is never.
func (s *Setting) end() time.Time {
	switch {
	case s.Cleared:
		return s.At
	case s.Until.IsZero():
		return never
	}
	return s.Until
}

// total returns the sum of the setting, or of nil.
func (s *Setting) total() sum {
	if s == nil {
		return nothing
	}
	at := s.end().UnixMilli()
	sum := sum{settings: 1, first: at, last: at}
	if s.lost {
		sum.lost = 1
	}
	return sum
}

// isOver reports whether nobody needs to know of the setting any more, at a version of the settings.
func (s *Setting) isOver(now time.Time, version int64) bool {
	return !s.holds(now) && (now.Sub(s.end()) > deadLife || s.version <= version-maxGap)
}

// copy returns a setting with the same values.
func (s *Setting) copy() *Setting {
	return &Setting{Kind: s.Kind, Rule: s.Rule, Key: s.Key, Match: s.Match, AllKeys: s.AllKeys, Values: s.Values, Cleared: s.Cleared}
}

// Unfit is the error of a setting that cannot be made.
type Unfit struct{ Reason string }

func (e *Unfit) Error() string { return e.Reason }

// text returns the setting as the store has it. The error is an *Unfit.
func (s *Setting) text() (string, error) {
	text, err := json.Marshal(s)
	switch n := len(s.Name()) + len(text); {
	case err != nil: // a factor or a time
		return "", &Unfit{"found a time outside the years 0 to 9999"}
	case n > MaxText:
		return "", &Unfit{fmt.Sprintf("found %d bytes; expected at most %d", n, MaxText)}
	}
	return string(text), nil
}

// parse parses a setting of the store.
func parse(name, text string) (*Setting, error) {
	s := new(Setting)
	err := decode(text, s, true)
	closed, byPattern := s.parseName(name)
	switch {
	case err != nil:
	case !closed || s.Rule == "" || s.Kind != Override && s.Kind != Block && s.Kind != Pause:
		err = errors.New("expected override, block or pause, and a rule")
	case byPattern != s.byPattern() || s.Match && !IsMatch(s.Key) || byPattern && s.AllKeys && s.Kind != Override:
		err = errors.New("expected a pattern of rules or of keys")
	case s.Kind != Override && s.Until.IsZero() && !s.Cleared:
		err = errors.New("the end is missing")
	}
	err = cmp.Or(err, CheckGlob(s.Rule))
	if err != nil {
		return nil, fmt.Errorf(`setting "%s" in the store: %s`, printable.Text(name, 128), printable.Text(err.Error(), 256))
	}
	return s, nil
}

// parseName takes the parts of a setting from its name. It reports whether what opens is closed, and whether the name is one of a setting by pattern.
func (s *Setting) parseName(name string) (closed, byPattern bool) {
	kind, rest, _ := strings.Cut(name, ":")
	kind, byPattern = strings.CutSuffix(kind, "*")
	rule, subject, byKey := strings.Cut(rest, ":{")
	if byKey {
		subject, s.Match = strings.CutSuffix(subject, "*")
	}
	subject, closed = strings.CutSuffix(subject, "}")
	s.Kind, s.Rule, s.Key, s.AllKeys = Kind(kind), rule, subject, !byKey
	return byKey == closed, byPattern
}

// decode parses JSON of the store. Programs of a later version may write further fields. If whole is true, that is an error.
func decode(text string, v any, whole bool) error {
	if len(text) > MaxText {
		return fmt.Errorf("found %d bytes; expected at most %d", len(text), MaxText)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	if whole {
		d.DisallowUnknownFields()
	}
	if err := d.Decode(v); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("found text after the value")
	}
	return nil
}
