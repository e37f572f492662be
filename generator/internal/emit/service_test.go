package emit_test

import (
	"context"
	"net/http"
)

type User struct {
	ID    int64
	Email string
	Org   *Org
}

type Org struct{ Name string }

// GetEmail accepts nil, as getters of generated protocol buffers do.
func (u *User) GetEmail() string {
	if u == nil {
		return ""
	}
	return u.Email
}

// Service has a method for each of twelve keys as services have them. BenchmarkKeys measures what its wrapper costs a call.
type Service interface {
	//ratelimit:rule key="{phone}" limit=10000000 per=1s algorithm=token-bucket
	Param(ctx context.Context, phone string) error
	//ratelimit:rule key="{clientIP(ctx)}" limit=10000000 per=1s algorithm=token-bucket
	Address(ctx context.Context) error
	//ratelimit:rule key="{tenant}:{userID(ctx)}" limit=10000000 per=1s algorithm=token-bucket
	TenantUser(ctx context.Context, tenant string) error
	//ratelimit:rule key="{user.ID}" limit=10000000 per=1s algorithm=token-bucket
	Field(ctx context.Context, user *User) error
	//ratelimit:rule key="{user.Org.Name}" limit=10000000 per=1s algorithm=token-bucket
	FieldOfField(ctx context.Context, user *User) error
	//ratelimit:rule key="{user.GetEmail()}" limit=10000000 per=1s algorithm=token-bucket
	Getter(ctx context.Context, user *User) error
	//ratelimit:rule key="{lower(trim(user.Email))}" limit=10000000 per=1s algorithm=token-bucket
	Lower(ctx context.Context, user *User) error
	//ratelimit:rule key="{r.Header.Get('X-Api-Key')}" limit=10000000 per=1s algorithm=token-bucket
	Header(ctx context.Context, r *http.Request) error
	//ratelimit:rule key="{user?.Org?.Name ?? clientIP(ctx)}" limit=10000000 per=1s algorithm=token-bucket
	Optional(ctx context.Context, user *User) error
	//ratelimit:rule key="{user.Org.Name + '/' + branch}" limit=10000000 per=1s algorithm=token-bucket
	Sum(ctx context.Context, user *User, branch string) error
	//ratelimit:rule key="{method}:{user.Org.Name}:{user.ID}" limit=10000000 per=1s algorithm=token-bucket
	Parts(ctx context.Context, user *User) error
	//ratelimit:rule key="{user.Email}" limit=10000000 per=1s algorithm=token-bucket when="user.Org != nil && user.ID > 10" cost="len(items) * 2"
	Charge(ctx context.Context, user *User, items []string) error
}
