package main

import (
	"net/http"
	"strings"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// withUser notes who sends a request, if its bearer token is that of a user. It lets all others pass: a method whose rules
// need a user answers them with a *KeyError.
func withUser(users map[string]string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if user := users[token]; user != "" {
			r = r.WithContext(ratelimit.WithUserID(r.Context(), user))
		}
		next.ServeHTTP(w, r)
	})
}
