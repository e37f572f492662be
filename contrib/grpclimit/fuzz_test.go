package grpclimit_test

import (
	"errors"
	"strings"
	"testing"
	"time"
	"unicode"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/ratelimit-go/ratelimit/contrib/grpclimit"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// FuzzFromError decodes arbitrary statuses. The client's error keeps the status. If it is an error of the runtime, its text is a line of at most
// 1 kB.
func FuzzFromError(f *testing.F) {
	for _, err := range []error{
		&ratelimit.TooManyRequestsError{Message: "Slow down.", RetryAfter: time.Second, Violations: []ratelimit.Violation{{Rule: "a", Limit: 5}}},
		&ratelimit.TooManyRequestsError{Message: "a\nb", Never: true, Violations: []ratelimit.Violation{{Rule: "b"}}},
		&ratelimit.NeverAdmissibleError{Rule: "a", Cost: 7, Limit: 5},
		&ratelimit.KeyError{Reason: "doc is nil"}, &ratelimit.StoreError{Err: errors.New("lost")}, &ratelimit.RuleError{Rule: "a", Argument: "per"},
	} {
		s, _ := status.FromError(grpclimit.Error(err))
		text, err := proto.Marshal(s.Proto())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var sent spb.Status
		if proto.Unmarshal(text, &sent) != nil {
			return
		}
		was := status.FromProto(&sent)
		err := grpclimit.FromError(was.Err())
		if err == nil {
			return
		}
		if is, ok := status.FromError(err); !ok || is.Code() != was.Code() {
			t.Errorf("%v became %v", was, err)
		}
		refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err)
		if ok && (len(refusal.Error()) > 1024 || strings.ContainsFunc(refusal.Error(), unicode.IsControl)) {
			t.Errorf("%q is not a line of at most 1 kB", refusal.Error())
		}
	})
}
