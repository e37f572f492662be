package wrap

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strconv"
	"strings"
	"time"

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

// longestDelay bounds the delay that a far side asks for.
const longestDelay = 24 * time.Hour

// RetryAfter returns the delay that a far side asks for: in the field Retry-After of an *http.Response or an http.Header, in the RetryInfo of
// an error of gRPC, or in a *ratelimit.TooManyRequestsError. It is at most a day. It is 0 if x asks for none, or if the delay cannot be read or is
// past. The function imports neither net/http nor gRPC: a program that uses none of them links none of them.
func RetryAfter(x any) time.Duration {
	return min(max(0, delayOf(x)), longestDelay)
}

func delayOf(x any) time.Duration {
	if IsNil(x) {
		return 0
	}
	if err, ok := x.(error); ok {
		return delayOfError(err)
	}
	if response := reflect.Indirect(reflect.ValueOf(x)); response.Kind() == reflect.Struct {
		if field := response.FieldByName("Header"); field.IsValid() && field.CanInterface() {
			x = field.Interface()
		}
	}
	if header, ok := x.(interface{ Get(string) string }); ok {
		return delayOfField(header.Get("Retry-After"), time.Now())
	}
	return 0
}

// delayOfField reads a field Retry-After (RFC 9110, section 10.2.3): a number of seconds, or a date.
func delayOfField(field string, now time.Time) time.Duration {
	seconds, err := strconv.ParseUint(field, 10, 64)
	if err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(longestDelay/time.Second))) * time.Second
	}
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
		if at, err := time.Parse(layout, field); err == nil {
			return at.Sub(now)
		}
	}
	return 0
}

// delayOfError returns the delay that an error asks for, or one that it wraps.
func delayOfError(err error) (delay time.Duration) {
	if IsNil(err) {
		return 0
	}
	if refusal, ok := err.(*ratelimit.TooManyRequestsError); ok {
		return refusal.RetryAfter
	}
	if delay = delayOfStatus(err); delay > 0 {
		return delay
	}
	switch err := err.(type) {
	case interface{ Unwrap() error }:
		return delayOfError(err.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range err.Unwrap() {
			delay = max(delay, delayOfError(one))
		}
	}
	return delay
}

// delayOfStatus returns the delay in the google.rpc.RetryInfo of a gRPC error. The details of its status are found by the names of methods, and
// decoded here, because the program need not link the type RetryInfo. The names are constants: a variable name would make the linker keep all
// methods of the program.
func delayOfStatus(err error) time.Duration {
	status := result(reflect.ValueOf(err).MethodByName("GRPCStatus"))
	details := result(result(status.MethodByName("Proto")).MethodByName("GetDetails"))
	if details.Kind() != reflect.Slice {
		return 0
	}
	for i := range details.Len() {
		detail, ok := details.Index(i).Interface().(interface {
			GetTypeUrl() string
			GetValue() []byte
		})
		if ok && strings.HasSuffix(detail.GetTypeUrl(), "/google.rpc.RetryInfo") {
			return delayOfRetryInfo(detail.GetValue())
		}
	}
	return 0
}

// result calls a method without arguments. If there is no such method, or if its result is nil, result returns a value without methods.
func result(method reflect.Value) reflect.Value {
	if method.IsValid() && method.Type().NumIn() == 0 && method.Type().NumOut() == 1 {
		if value := method.Call(nil)[0]; !IsNil(value.Interface()) {
			return value
		}
	}
	return reflect.ValueOf(struct{}{})
}

// delayOfRetryInfo decodes a google.rpc.RetryInfo. Its field 1 is a google.protobuf.Duration, which has seconds and nanoseconds.
func delayOfRetryInfo(message []byte) time.Duration {
	_, duration := protoField(message, 1)
	seconds, _ := protoField(duration, 1)
	nanoseconds, _ := protoField(duration, 2)
	seconds = min(max(seconds, 0), int64(longestDelay/time.Second))
	return time.Duration(seconds)*time.Second + time.Duration(int32(nanoseconds))
}

// protoField returns the last field with a number in a protocol buffer: an integer, or bytes. It ends at the first field that is neither.
func protoField(message []byte, number uint64) (integer int64, bytes []byte) {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		value, m := binary.Uvarint(message[max(n, 0):])
		if n <= 0 || m <= 0 {
			break
		}
		message = message[n+m:]
		var inner []byte
		switch {
		case tag&7 == 2 && value <= uint64(len(message)):
			inner, message = message[:value], message[value:]
		case tag&7 != 0:
			return integer, bytes
		}
		if tag>>3 == number {
			integer, bytes = int64(value), inner
		}
	}
	return integer, bytes
}
