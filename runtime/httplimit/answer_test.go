package httplimit_test

import (
	"net/http/httptest"
	"testing"

	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// A call without an error is left to the handler: all functions that answer do nothing, below a Report, too.
func TestAnswerOfNoError(t *testing.T) {
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
	w.Code = 0
	httplimit.Answer(w, r, nil)
	httplimit.SetHeaders(w, nil)
	if httplimit.Error(w, r, nil) || httplimit.Status(nil) != 0 {
		t.Errorf("Error answers, or there is the status %d", httplimit.Status(nil))
	}
	if w.Code != 0 || len(w.Header()) > 0 || w.Body.Len() > 0 {
		t.Errorf("they answer %d, %v, %q", w.Code, w.Header(), w.Body)
	}
}
