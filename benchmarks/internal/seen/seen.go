// Package seen says what clients see of a limited handler.
package seen

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"
)

// Answer is the response to one request.
type Answer struct {
	Status int
	Header http.Header
	Body   string
}

// By returns the answers to 102 requests from one address, and then one from another. The function limit makes a handler of a limit of 100 a
// minute. A bucket gains permits while By asks. So By asks a new handler if that took long.
func By(limit func(http.Handler) http.Handler) []Answer {
	for {
		began := time.Now()
		handler := limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") }))
		var answers []Answer
		for range 102 {
			answers = append(answers, ask(handler, "192.0.2.1:4711"))
		}
		answers = append(answers, ask(handler, "192.0.2.2:4711"))
		if time.Since(began) < 100*time.Millisecond {
			return answers
		}
	}
}

func ask(handler http.Handler, from string) Answer {
	r, w := httptest.NewRequest("GET", "/", nil), httptest.NewRecorder()
	r.RemoteAddr = from
	handler.ServeHTTP(w, r)
	return Answer{w.Code, w.Header(), w.Body.String()}
}
