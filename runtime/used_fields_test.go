package ratelimit

import (
	"reflect"
	"testing"
	"time"
)

// untoldFields are the fields that tools do not need.
var untoldFields = map[string]bool{"Scope": true, "Refund": true, "OnError": true, "Message": true}

// TestUsedRuleHasEachField writes rules for tools and reads them back. Every field of Rule must survive, except untoldFields.
func TestUsedRuleHasEachField(t *testing.T) {
	samples := []Rule{
		{Name: "calendar", Limit: 5, Cron: "@daily", TZ: "Asia/Tokyo", Algorithm: Calendar, Hash: HashNever, Mode: ModeShadow},
		{Name: "anchored", Limit: 5, Every: "1mo"},
		{Name: "bucket", Key: "{a}", Limit: 5, Per: time.Minute, Algorithm: TokenBucket, Burst: 7, Prepay: true},
		{Name: "waits", Limit: 5, Per: time.Minute, Algorithm: TokenBucket, Wait: time.Second, Queue: 3},
		{Name: "warm", Limit: 5, Per: time.Minute, Algorithm: TokenBucket, Warmup: time.Second},
		{Name: "counter", Limit: 5, Per: time.Minute, Algorithm: SlidingCounter, Slices: 7, Block: time.Hour, BlockMax: 3 * time.Hour},
		{Name: "members", Limit: 5, Per: time.Minute, Distinct: "{b}", Refund: RefundError, OnError: FailOpen, Message: "Slow down."},
		{Name: "tokens", Limit: 5, Per: time.Minute, Amounts: true},
		{Name: "computed", Computed: true, Per: time.Minute},
		{Name: "paused", Limit: 5, Per: time.Minute, Pausable: true},
		{Name: "leased", Limit: 5, Per: time.Minute, Lease: time.Second},
		{Name: "alone", Limit: 5, Per: time.Minute, Scope: ScopeInstance, Unreported: true},
	}
	given, kept := map[string]bool{}, map[string]bool{}
	for _, rule := range samples {
		p, err := rule.prepare("")
		if err != nil {
			t.Fatal(err)
		}
		again, err := parseUsed(p.Declared.Text(p.Label))
		if err != nil {
			t.Fatal(err)
		}
		before, after := reflect.ValueOf(rule), reflect.ValueOf(again.Rule)
		for i := range before.NumField() {
			name := before.Type().Field(i).Name
			if !before.Type().Field(i).IsExported() || before.Field(i).IsZero() {
				continue
			}
			given[name] = true
			kept[name] = kept[name] || before.Field(i).Equal(after.Field(i))
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Rule]()) {
		switch {
		case !f.IsExported():
		case !given[f.Name]:
			t.Errorf("no sample has the field %s", f.Name)
		case kept[f.Name] == untoldFields[f.Name]:
			t.Errorf("%s: kept %v, among those that tools do without %v", f.Name, kept[f.Name], untoldFields[f.Name])
		}
	}
}
