package lua

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/internal/engine"
)

// FuzzReply decodes arbitrary replies. A refused call is not charged, no number is so large that sums overflow, and an error is about the reply.
func FuzzReply(f *testing.F) {
	v := packed(1e15) + packed(1e15+5) + packed(3)
	f.Add("\x01"+v, int64(5), uint8(1))
	f.Add("\x01"+v+"\x01\x03"+strings.Repeat(packed(2), 4), int64(5), uint8(2))
	f.Add("\x02"+v+"\x02\x04"+strings.Repeat(packed(2), 4)+"\x01\x01"+packed(7), int64(5), uint8(0x22))
	f.Add("\x00"+packed(9)+"\x01\x02"+packed(1)+packed(2)+"\x01\x05"+packed(1), int64(5), uint8(0x43))
	f.Add("", int64(-7), uint8(3))
	f.Fuzz(func(t *testing.T, report string, n int64, form uint8) {
		call := &engine.Call{Peek: form&0x10 != 0, UpTo: form&0x20 != 0}
		if form&0x40 != 0 {
			call.Lease = 1000
		}
		for i := range form & 3 {
			ask := engine.Ask{Rule: &engine.Rule{Kind: engine.TokenBucket, Per: 1000}, Limit: 3, Cost: 1, Mode: engine.Mode(i)}
			call.Claims = append(call.Claims, engine.Claim{Ask: ask, Delta: 7})
		}
		for _, reply := range []any{n, nil, report, []any{n}, []any{n, n}} {
			adjusted := engine.Call{Claims: slices.Clone(call.Claims)}
			var windows WindowsAt
			if _, err := ReadAdjustment(reply, &adjusted); err != nil && !errors.Is(err, ErrReply) && !errors.As(err, &windows) {
				t.Errorf("%v: %v", reply, err)
			}
			for _, c := range adjusted.Claims {
				if c.Delta < 0 || c.Delta > 7 {
					t.Errorf("%v: of 7 permits %d are left", reply, c.Delta)
				}
			}
			v, err := ReadDecision(reply, call)
			if err != nil && !errors.Is(err, ErrReply) && !errors.As(err, &windows) {
				t.Errorf("%v: %v", reply, err)
			}
			if err != nil {
				continue
			}
			if max(v.Taken, -v.Taken, v.At, -v.At) > 1<<62 && reply == any(report) {
				t.Errorf("%v: %+v", reply, v)
			}
			for _, c := range call.Claims {
				if c.Charged != 0 && (c.Refused || !v.Admitted || call.Peek && reply == any(report)) {
					t.Errorf("%v: a call that is not admitted is charged: %+v, %+v", reply, v, c)
				}
			}
		}
	})
}
