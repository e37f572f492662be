package main

import (
	"net"
	"net/http"
	"strings"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// withClientIP notes whom a request comes from. RemoteAddr is the other end of the connection and cannot be forged, as
// X-Forwarded-For can. Behind a proxy of your own it is the proxy's address: take the client's from the header that the proxy
// sets, and only if the request came from that proxy.
func withClientIP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ip, _, err := net.SplitHostPort(r.RemoteAddr)
		if err != nil {
			ip = r.RemoteAddr
		}
		next.ServeHTTP(w, r.WithContext(ratelimit.WithClientIP(r.Context(), ip)))
	})
}

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
