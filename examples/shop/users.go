package main

import (
	"context"
	"net/http"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// users maps tokens to users, as a real service would with its sessions.
type users map[string]string

// of returns the user of an Authorization field, or "".
func (u users) of(authorization string) string {
	token, _ := strings.CutPrefix(authorization, "Bearer ")
	return u[token]
}

// require passes on the requests of known users, with the user in the context. It answers other requests with "log in first".
func (u users) require(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user := u.of(r.Header.Get("Authorization"))
		if user == "" {
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, "log in first", http.StatusUnauthorized)
			return
		}
		next(w, r.WithContext(ratelimit.WithUserID(r.Context(), user)))
	}
}

// ofCall returns the user of a gRPC call.
func (u users) ofCall(ctx context.Context) (string, error) {
	for _, authorization := range metadata.ValueFromIncomingContext(ctx, "authorization") {
		if user := u.of(authorization); user != "" {
			return user, nil
		}
	}
	return "", status.Error(codes.Unauthenticated, "the call needs a token")
}
