package exempt

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
	"github.com/ratelimit-go/ratelimit/runtime/limittest"
)

func TestOursHaveNoLimit(t *testing.T) {
	limiter, _ := limittest.New(t)
	handler := httplimit.ClientIP().Handler(http.HandlerFunc(LimitHandler(func(http.ResponseWriter, *http.Request) {}, limiter)))
	for address, last := range map[string]int{"10.1.2.3:80": http.StatusOK, "192.0.2.1:80": http.StatusTooManyRequests} {
		for i := range 101 {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = address
			handler.ServeHTTP(w, r)
			want := http.StatusOK
			if i == 100 {
				want = last
			}
			if w.Code != want {
				t.Errorf("%s: answer %d is %d; expected %d", address, i, w.Code, want)
			}
		}
	}
}
