package uploads

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

func TestBytesCount(t *testing.T) {
	limiter, _ := limittest.New(t)
	handler := Handler(LimitSave(func(_ context.Context, announced int64, file io.Reader) (int64, error) {
		return io.Copy(io.Discard, file)
	}, limiter))
	ask := func(body io.Reader, announced int64, status int) {
		t.Helper()
		w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/", body)
		r.ContentLength = announced
		if handler(w, r.WithContext(ratelimit.WithUserID(r.Context(), "ann"))); w.Code != status {
			t.Fatalf("got %d %s; expected %d", w.Code, w.Body, status)
		}
	}
	left := func(want int64) {
		t.Helper()
		d, err := limiter.Peek(t.Context(), ratelimit.Request{Rule: SaveRules()[0], Key: "ann"})
		if err != nil || d.Quotas[0].Remaining != want {
			t.Fatalf("got %+v, %v; expected %d left", d.Quotas, err, want)
		}
	}
	ask(strings.NewReader("12345"), 5, http.StatusOK)
	left(999_999_995)
	ask(strings.NewReader("12345"), -1, http.StatusOK)
	left(999_999_990)
	ask(io.LimitReader(zeros{}, most+1), -1, http.StatusRequestEntityTooLarge)
	left(999_999_990 - most)
	ask(io.LimitReader(zeros{}, most+1), most+1, http.StatusRequestEntityTooLarge)
	left(999_999_990 - 2*most)
	for range 17 {
		ask(io.LimitReader(zeros{}, most), most, http.StatusOK)
	}
	left(49_999_990)
	ask(strings.NewReader("12345"), -1, http.StatusTooManyRequests)
	ask(strings.NewReader("12345"), 5, http.StatusOK)
	ask(strings.NewReader("12345"), 1_000_000_001, http.StatusTooManyRequests) // charged as the most
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
