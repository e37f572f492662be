package runtime

import "context"

type identityKey int

const (
	clientIPKey identityKey = iota
	userIDKey
)

// WithClientIP returns a context in which clientIP(ctx) is ip: the address of whoever the call is made for. Take it from
// where it cannot be forged: the connection, or a header that your own proxy sets.
func WithClientIP(ctx context.Context, ip string) context.Context {
	return context.WithValue(ctx, clientIPKey, ip)
}

// ClientIP returns what [WithClientIP] put into ctx, or "".
func ClientIP(ctx context.Context) string { return identity(ctx, clientIPKey) }

// WithUserID returns a context in which userID(ctx) is id: the authenticated user that the call is made for.
func WithUserID(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, userIDKey, id)
}

// UserID returns what [WithUserID] put into ctx, or "".
func UserID(ctx context.Context) string { return identity(ctx, userIDKey) }

func identity(ctx context.Context, key identityKey) string {
	s, _ := ctx.Value(key).(string)
	return s
}
