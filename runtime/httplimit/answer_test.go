package httplimit_test

import (
	"net/http/httptest"
	"testing"

	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// Answer leaves the answer to a call without an error to the handler.
func TestAnswerOfNoError(t *testing.T) {
	w := httptest.NewRecorder()
	w.Code = 0
	httplimit.Answer(w, httptest.NewRequest("GET", "/", nil), nil)
	if w.Code != 0 || len(w.Header()) > 0 || w.Body.Len() > 0 {
		t.Errorf("it answers %d, %v, %q", w.Code, w.Header(), w.Body)
	}
}
