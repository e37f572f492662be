package farside

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// status has the methods by which the details of a gRPC status are found.
type status struct{ details []*detail }

func (s *status) Error() string              { return "status" }
func (s *status) GRPCStatus() *status        { return s }
func (s *status) Proto() *status             { return s }
func (s *status) GetDetails() []*detail      { return s.details }
func retryInfo(message []byte) *status       { return &status{[]*detail{{"x/y", nil}, {infoType, message}}} }
func (*other) GRPCStatus() (int, error)      { return 0, nil }
func (*nothing) GRPCStatus() *status         { return nil }
func (*badNumber) GRPCStatus() *numberStatus { return &numberStatus{} }
func (*numberStatus) Proto() int             { return 3 }

const infoType = "type.googleapis.com/google.rpc.RetryInfo"

type (
	other        struct{ error }
	nothing      struct{ error }
	badNumber    struct{ error }
	numberStatus struct{}
	detail       struct {
		url   string
		value []byte
	}
)

func (d *detail) GetTypeUrl() string { return d.url }
func (d *detail) GetValue() []byte   { return d.value }

// encoded returns a google.rpc.RetryInfo.
func encoded(seconds int64, nanoseconds int32) []byte {
	duration := binary.AppendUvarint([]byte{1 << 3}, uint64(seconds))
	duration = binary.AppendUvarint(append(duration, 2<<3), uint64(int64(nanoseconds)))
	return append(binary.AppendUvarint([]byte{1<<3 | 2}, uint64(len(duration))), duration...)
}

// refusal is a refusal by a rule of this program, as a *TooManyRequestsError is.
type refusal struct {
	error
	RetryAfter time.Duration
}

func isOwn(x any) bool {
	_, is := x.(*refusal)
	return is
}

func after(x any) time.Duration { return ByValue(x, now, isOwn).For }

// The errors of client libraries, by their shapes.
type (
	delayMethod  struct{ error }
	timeMethod   struct{ error }
	nilMethod    struct{ error }
	panics       struct{ error }
	panicsUnwrap struct{ error }
	inDuration   struct { // slack
		error
		RetryAfter time.Duration
	}
	inPointer struct { // go-github, AbuseRateLimitError
		error
		RetryAfter *time.Duration
		Response   *http.Response
	}
	inTime struct {
		error
		RetryAfter time.Time
		Response   *http.Response
	}
	inNumber struct { // go-shopify: seconds, which nobody says
		error
		RetryAfter int
	}
	tooMany  struct{ RetryAfter time.Duration }
	limit    struct{ *tooMany }
	embedded struct { // discordgo: through two embedded pointers
		error
		*limit
	}
	Response   struct{ *http.Response }
	TooMany    struct{ RetryAfter time.Duration }
	inResponse struct { // openai-go, anthropic-sdk-go, gitlab
		error
		Response *http.Response
	}
	inEmbedded struct { // aws-sdk-go-v2
		error
		Response *Response
	}
	inRaw struct { // azcore
		error
		RawResponse *http.Response
	}
	inHeader struct { // googleapi
		error
		Code   int
		Header http.Header
	}
	far struct {
		error
		isFar bool
	}
)

func (delayMethod) RetryAfter() time.Duration { return 7 * time.Second }
func (timeMethod) RetryAfter() *time.Time     { at := now.Add(7 * time.Second); return &at }
func (nilMethod) RetryAfter() *time.Duration  { return nil }
func (panics) RetryAfter() time.Duration      { panic("no") }
func (panicsUnwrap) Unwrap() error            { panic("no") }
func (f far) Unwrap() error                   { return f.error }
func (f far) FarSide() bool                   { return f.isFar }

// The delay is found wherever a far side may tell it, and in nothing else.
func TestByValue(t *testing.T) {
	seven, fields := 7*time.Second, http.Header{"Retry-After": {"7"}}
	response := &http.Response{StatusCode: 429, Header: fields}
	var none *http.Response
	slow := errors.New("slow down")
	own := &refusal{slow, seven}
	for _, c := range []struct {
		x    any
		want time.Duration
	}{
		{fields, seven}, {http.Header{}, 0}, {http.Header(nil), 0}, {response, seven}, {&http.Response{Header: fields}, seven}, {&http.Response{}, 0}, {none, 0},
		{*response, seven}, {&http.Response{StatusCode: 202, Header: fields}, 0}, {&http.Response{StatusCode: 500, Header: fields}, seven},
		{own, 0}, {fmt.Errorf("call: %w", own), 0}, {errors.Join(own, retryInfo(encoded(7, 0))), seven},
		{far{retryInfo(encoded(7, 0)), true}, seven}, {far{retryInfo(encoded(7, 0)), false}, 0}, {fmt.Errorf("call: %w", far{own, true}), 0},
		{errors.Join(slow, nil, inDuration{slow, seven}, inDuration{slow, time.Second}), seven}, {&url.Error{Op: "Get", Err: inDuration{slow, seven}}, seven},
		{delayMethod{slow}, seven}, {timeMethod{slow}, seven}, {nilMethod{slow}, 0}, {&inDuration{slow, seven}, seven}, {inDuration{slow, -1}, 0},
		{inDuration{slow, 25 * time.Hour}, Longest}, {&inPointer{slow, &seven, nil}, seven}, {&inPointer{slow, nil, response}, seven}, {&inPointer{slow, nil, nil}, 0},
		{inTime{slow, now.Add(seven), nil}, seven}, {inTime{slow, now.Add(-seven), nil}, 0}, {inTime{}, 0},
		{inTime{slow, now.Add(seven), &http.Response{Header: http.Header{"Date": {"Mon, 23 Nov 2026 11:59:00 GMT"}}}}, time.Minute + seven},
		{embedded{slow, &limit{&tooMany{seven}}}, seven}, {embedded{slow, &limit{}}, 0}, {&embedded{}, 0},
		{&inResponse{slow, response}, seven}, {&inResponse{slow, nil}, 0}, {&inResponse{slow, &http.Response{}}, 0}, {&inRaw{slow, response}, seven}, {&inRaw{}, 0},
		{&inEmbedded{slow, &Response{response}}, seven}, {&inEmbedded{slow, &Response{}}, 0}, {&inEmbedded{}, 0},
		{&inHeader{slow, 403, fields}, seven}, {&inHeader{slow, 7, fields}, seven}, {&inHeader{}, 0},
		{retryInfo(encoded(6, 1e9)), seven}, {fmt.Errorf("call: %w", retryInfo(encoded(7, 0))), seven}, {retryInfo(encoded(-7, 0)), 0},
		{retryInfo(encoded(math.MaxInt64, 0)), Longest}, {retryInfo(encoded(math.MinInt64, math.MinInt32)), 0}, {retryInfo(nil), 0},
		{&status{}, 0}, {(*status)(nil), 0}, {&other{}, 0}, {&nothing{}, 0}, {&badNumber{}, 0}, {slow, 0},
		{nil, 0}, {7, 0}, {"7", 0}, {struct{ Header int }{7}, 0}, {struct{ header http.Header }{fields}, 0}, {struct{ RetryAfter any }{}, 0},
	} {
		if got := after(c.x); got != c.want {
			t.Errorf("%T %+v: %s, want %s", c.x, c.x, got, c.want)
		}
	}
}

// A method that panics, and a number without a unit, ask for nothing, and are told.
func TestOddValues(t *testing.T) {
	for want, x := range map[string]any{
		"a method panicked": panics{}, "a method panicked ": panicsUnwrap{}, "a value of type int": inNumber{RetryAfter: 7},
	} {
		got := ByValue(x, now, isOwn)
		if got.For != 0 || len(got.Odd) != 1 || !strings.Contains(got.Odd[0].Name, fmt.Sprintf("%T", x)) || !strings.Contains(got.Odd[0].Value, strings.TrimSpace(want)) {
			t.Errorf("%T: got %+v", x, got)
		}
	}
}

// The delay of a RetryInfo is read whatever other fields are around it.
func TestRetryInfoIsDecoded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		delay := time.Duration(rapid.Int64Range(0, int64(Longest)).Draw(t, "delay"))
		message := encoded(int64(delay/time.Second), int32(delay%time.Second))
		for range rapid.IntRange(0, 3).Draw(t, "others") {
			field := binary.AppendUvarint(nil, rapid.Uint64Range(2, 1<<40).Draw(t, "number")<<3)
			field = binary.AppendUvarint(field, rapid.Uint64().Draw(t, "value"))
			message = append(field, message...)
		}
		if got := after(retryInfo(message)); got != delay {
			t.Fatalf("got %s, want %s", got, delay)
		}
	})
}

// A delay below zero counts as 0, however far below it is.
func TestNegativeRetryInfo(t *testing.T) {
	for _, seconds := range []int64{-1, -9223372037, math.MinInt64} {
		if d := after(retryInfo(encoded(seconds, 0))); d != 0 {
			t.Errorf("%d seconds: got %s", seconds, d)
		}
	}
}

// FuzzRetryInfo decodes what a far side may send.
func FuzzRetryInfo(f *testing.F) {
	f.Add(encoded(7, 5))
	f.Add(encoded(math.MaxInt64, math.MinInt32))
	f.Add(encoded(-9223372037, 0))
	f.Fuzz(func(t *testing.T, message []byte) {
		if d := after(retryInfo(message)); d < 0 || d > Longest {
			t.Errorf("got %s", d)
		}
	})
}
