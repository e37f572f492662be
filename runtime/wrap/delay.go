package wrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ratelimit-go/ratelimit/internal/farside"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// Delay returns the duration of pause= of the rule with an index. It is 0, so nothing pauses, if the rule does not apply to the call, or if the
// duration cannot be computed. The first time for an expression is logged.
func (r *Rules) Delay(ctx context.Context, taken *Taken, rule int, expr string, island func() time.Duration) time.Duration {
	if !taken.Applies(rule) {
		return 0
	}
	delay, err := Value(r.at(rule), expr, island)
	if err == nil {
		return delay
	}
	if _, again := r.panicked.LoadOrStore("pause="+expr, true); !again {
		why := err.Error()
		if e, ok := errors.AsType[*ratelimit.KeyError](err); ok { // whose cause may contain a subject
			why = cmp.Or(e.Reason, fmt.Sprintf("%T", e.Err))
		}
		slog.WarnContext(ctx, "ratelimit: pause= could not be computed, so its key goes on", "method", r.method, "expr", expr, "why", why)
	}
	return 0
}

// RetryAfter returns the delay that a far side asks for, at most a day; docs/outbound.md has a table of what is read. x is an *http.Response, an
// http.Header, or an error: it, or one that it wraps, may have a method or a field RetryAfter of type time.Duration or time.Time, a field Header or
// Response, or the RetryInfo of gRPC. For example, an error with a Response whose status is 429 and whose Retry-After is 30 asks for 30 s. A
// *ratelimit.TooManyRequestsError counts only if it came from another program. The delay is 0 if x asks for none, or for one that is past or cannot be
// read; the first time for a field is logged.
func RetryAfter(x any) time.Duration {
	asked := farside.ByValue(x, time.Now(), isOwn)
	for _, odd := range asked.Odd {
		sayOdd(context.Background(), &unread, "", odd)
	}
	return asked.For
}

// Asked returns what an error of a call asks for, or else the fields that came with it.
func Asked(err error, fields farside.Fields) farside.Asked {
	asked := farside.ByValue(err, time.Now(), isOwn)
	if asked.For == 0 {
		asked.Add(farside.ByFields(0, fields, time.Now(), false))
	}
	return asked
}

// isOwn reports whether x is a refusal by a rule of this program.
func isOwn(x any) bool {
	_, is := x.(*ratelimit.TooManyRequestsError)
	return is
}

// unread are the fields of which RetryAfter has logged that they cannot be read.
var unread sync.Map

// sayOdd logs that a field of a far side could not be read, unless it is among those said before. There are as many as the reader knows, and types.
func sayOdd(ctx context.Context, said *sync.Map, method string, odd farside.Odd) {
	if _, again := said.LoadOrStore(odd.Name, true); !again {
		slog.WarnContext(ctx, "ratelimit: what a far side said of a delay could not be read, so it does not count",
			"method", method, "field", odd.Name, "value", odd.Value)
	}
}
