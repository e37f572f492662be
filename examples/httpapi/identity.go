package main

import (
	"net/http"
	"strings"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// withUser puts the user into the context of a request if its bearer token is known. It passes on all other requests: a method whose
// rules need a user returns a *KeyError for them.
func withUser(users map[string]string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if user := users[token]; user != "" {
			r = r.WithContext(ratelimit.WithUserID(r.Context(), user))
		}
		next.ServeHTTP(w, r)
	})
}
