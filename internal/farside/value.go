package farside

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// ByValue returns what a response, a header or an error asks for, at the time now. The first error of a chain that asks for a delay counts; of errors
// that are joined, the longest delay does. isOwn reports whether an error is a refusal by a rule of this program: it asks for nothing, unless what
// wraps it has a method FarSide that returns true. If that method returns false, what is below it asks for nothing.
func ByValue(x any, now time.Time, isOwn func(x any) bool) (a Asked) {
	if isNil(reflect.ValueOf(x)) || isOwn(x) {
		return a
	}
	defer func() {
		if recover() != nil { // a method of a user's type
			a.odd(fmt.Sprintf("%T", x), "a method panicked")
		}
	}()
	if by, ok := x.(interface{ FarSide() bool }); ok && !by.FarSide() {
		return a
	}
	a = ofOne(x, now)
	if a.For > 0 {
		return a
	}
	switch x := x.(type) {
	case interface{ Unwrap() error }:
		a.Add(ByValue(x.Unwrap(), now, isOwn))
	case interface{ Unwrap() []error }:
		for _, err := range x.Unwrap() {
			a.Add(ByValue(err, now, isOwn))
		}
	}
	return a
}

// ofOne returns what a value itself asks for.
func ofOne(x any, now time.Time) (a Asked) {
	status, fields := response(x)
	if fields != nil {
		now = clock(fields, now)
	}
	a.retryAfter(x, now)
	if a.For == 0 && fields != nil {
		a.Add(ByFields(status, fields, now, false))
	}
	if err, ok := x.(error); ok && a.For == 0 {
		a.retryInfo(err)
	}
	return a
}

// retryAfter reads the method or the field RetryAfter of a value.
func (a *Asked) retryAfter(x any, now time.Time) {
	var after any
	switch x := x.(type) {
	case interface{ RetryAfter() time.Duration }:
		after = x.RetryAfter()
	case interface{ RetryAfter() *time.Duration }:
		after = x.RetryAfter()
	case interface{ RetryAfter() time.Time }:
		after = x.RetryAfter()
	case interface{ RetryAfter() *time.Time }:
		after = x.RetryAfter()
	default:
		after = field(x, "RetryAfter")
	}
	value := reflect.Indirect(reflect.ValueOf(after))
	if !value.IsValid() || value.IsZero() {
		return
	}
	switch after := value.Interface().(type) {
	case time.Duration:
		a.ask("RetryAfter", after.String(), after)
	case time.Time:
		a.ask("RetryAfter", after.Format(time.RFC3339), after.Sub(now))
	default: // a number, for example, whose unit nobody says
		a.odd(fmt.Sprintf("RetryAfter of %T", x), fmt.Sprintf("a value of type %T; expected time.Duration or time.Time", after))
	}
}

// response returns the status and the fields of a response, of a header, or of the response that an error has. The status is 0 if it is not known.
func response(x any) (status int, fields Fields) {
	if header, ok := x.(interface{ Values(string) []string }); ok {
		return 0, header.Values
	}
	if header, ok := field(x, "Header").(interface{ Values(string) []string }); ok {
		if n, ok := field(x, "StatusCode").(int); ok {
			return n, header.Values
		}
		if n, ok := field(x, "Code").(int); ok && 400 <= n && n < 600 {
			return n, header.Values
		}
		return 0, header.Values
	}
	for _, name := range [...]string{"Response", "RawResponse"} {
		if of := field(x, name); of != nil {
			if header, ok := field(of, "Header").(interface{ Values(string) []string }); ok {
				status, _ = field(of, "StatusCode").(int)
				return status, header.Values
			}
		}
	}
	return 0, nil
}

// field returns the field of a struct, or of what points to one. It is nil if there is none, or a nil pointer is on the way.
func field(x any, name string) any {
	v := reflect.ValueOf(x)
	for v.Kind() == reflect.Pointer && !v.IsNil() {
		v = v.Elem()
	}
	if v.Kind() != reflect.Struct {
		return nil
	}
	f, ok := v.Type().FieldByName(name)
	if !ok {
		return nil
	}
	of, err := v.FieldByIndexErr(f.Index)
	if err != nil || !of.CanInterface() {
		return nil
	}
	return of.Interface()
}

// retryInfo reads the google.rpc.RetryInfo of a gRPC error. The details of its status are found by the names of methods, and decoded here, because
// the program need not link the type RetryInfo. The names are constants: a variable name would make the linker keep all methods of the program.
func (a *Asked) retryInfo(err error) {
	status := result(reflect.ValueOf(err).MethodByName("GRPCStatus"))
	details := result(result(status.MethodByName("Proto")).MethodByName("GetDetails"))
	if details.Kind() != reflect.Slice {
		return
	}
	for i := range details.Len() {
		detail, ok := details.Index(i).Interface().(interface {
			GetTypeUrl() string
			GetValue() []byte
		})
		if ok && strings.HasSuffix(detail.GetTypeUrl(), "/google.rpc.RetryInfo") {
			delay := delayOfRetryInfo(detail.GetValue())
			a.ask("RetryInfo", delay.String(), delay)
			return
		}
	}
}

// result calls a method without arguments. If there is no such method, or if its result is nil, result returns a value without methods.
func result(method reflect.Value) reflect.Value {
	if method.IsValid() && method.Type().NumIn() == 0 && method.Type().NumOut() == 1 {
		if value := method.Call(nil)[0]; !isNil(value) {
			return value
		}
	}
	return reflect.ValueOf(struct{}{})
}

func isNil(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Func, reflect.Chan, reflect.UnsafePointer, reflect.Interface:
		return v.IsNil()
	}
	return false
}

// delayOfRetryInfo decodes a google.rpc.RetryInfo. Its field 1 is a google.protobuf.Duration, which has seconds and nanoseconds.
func delayOfRetryInfo(message []byte) time.Duration {
	_, duration := protoField(message, 1)
	seconds, _ := protoField(duration, 1)
	nanoseconds, _ := protoField(duration, 2)
	seconds = min(max(seconds, 0), int64(Longest/time.Second))
	return min(max(0, time.Duration(seconds)*time.Second+time.Duration(int32(nanoseconds))), Longest)
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
