package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/ratelimit-go/ratelimit/internal/rulelist"
)

// FuzzLock checks that parsed lines of ratelimit.lock are written as they were read, have no changes against themselves, and that each
// message about a change is one line.
func FuzzLock(f *testing.F) {
	f.Add([]byte(lockText), []byte(lockHeader))
	f.Add([]byte(lockText), []byte(strings.ReplaceAll(lockText, "phone", "number")))
	f.Add([]byte("\r\n{\"rule\":\"\\u0000\",\"key\":\"{a\\n}\"}\r\n"), []byte("{}\n{}{}"))
	f.Add([]byte(`{"rule":"a\nb","key":"\u001b[31m{a}"}`), []byte(`{"rule":"a\nb","key":"\r","tag":"1m"}`))
	f.Fuzz(func(t *testing.T, one, other []byte) {
		before, _, err := parseLock(lockName, one)
		if err != nil {
			return
		}
		written := formatLock(before)
		again, _, err := parseLock(lockName, written)
		if err != nil || !bytes.Equal(formatLock(again), written) {
			t.Errorf("%q became %q and then %q, %v", one, written, formatLock(again), err)
		}
		if found := changes(slices.Clone(before), again); len(found) > 0 {
			t.Errorf("%q is not like itself: %v", one, found)
		}
		now, line, err := parseLock(lockName, other)
		if err != nil {
			if line < 1 || line > bytes.Count(other, []byte("\n"))+1 {
				t.Errorf("line %d of %q: %v", line, other, err)
			}
			return
		}
		found := changes(before, now)
		if len(found) > len(before)+len(now) {
			t.Errorf("%d changes from %q to %q", len(found), one, other)
		}
		for _, m := range found {
			if strings.ContainsFunc(m.Text, unicode.IsControl) || len(m.Text) > maxChange+len("…") {
				t.Errorf("%q is not one line of some length", m.Text)
			}
		}
	})
}

// FuzzList checks that decoding rows never panics, and gives rules or an error.
func FuzzList(f *testing.F) {
	f.Add([]byte(`[{"method":"x.X.M","rule":"x.X.M","key":"{a}","limit":10,"window":"1m","algorithm":"token-bucket","settings":{"burst":20,"prepay":true}}]`))
	f.Add([]byte(`[{"method":"x.X.M","limitExpr":"len(a)","window":"@daily","algorithm":"calendar","settings":{"tz":"UTC","when":"a > \"b\""}}]`))
	f.Add([]byte(`[{"settings":{"a b":{"c":[1]},"":null}}] x`))
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, err := rulelist.Decode(text)
		if err != nil {
			return
		}
		for _, r := range rows {
			directive := r.Directive()
			rule, err := simulated(directive)
			if err != nil {
				continue
			}
			if err := rule.Validate(); err != nil {
				t.Errorf("%s: %v", directive, err)
			}
		}
	})
}
