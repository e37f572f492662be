package main

import "net/http"

// export answers with all books. ServeHTTP has no error result, so the rule needs a fallback for refused requests.
type export struct{ books []Book }

// ServeHTTP writes the books.
//
//ratelimit:rule name=export key="{clientIP(ctx)}" limit=2 per=1h
//ratelimit:fallback tooMany
func (e export) ServeHTTP(w http.ResponseWriter, r *http.Request) { writeJSON(w, e.books) }

// tooMany answers refused requests. The RateLimit header, which httplimit.Report adds, says when to try again.
func tooMany(w http.ResponseWriter, _ *http.Request) {
	http.Error(w, "two exports an hour", http.StatusTooManyRequests)
}
