package ratelimit

import (
	"context"

	"github.com/ratelimit-go/ratelimit/runtime/internal/bridge"
)

// WithClientIP returns a context in which clientIP(ctx) is ip: the address of the client that the call is made for. Use a source that the
// client cannot forge: the connection, or a header that your own proxy sets.
func WithClientIP(ctx context.Context, ip string) context.Context {
	return context.WithValue(ctx, bridge.ClientIP, ip)
}

// WithUserID returns a context in which userID(ctx) is id: the authenticated user that the call is made for.
func WithUserID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, bridge.UserID, id)
}
