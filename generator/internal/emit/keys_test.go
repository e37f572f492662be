package emit_test

import (
	"context"
	"net/http"
	"testing"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
)

type service struct{}

func (service) Param(context.Context, string) error           { return nil }
func (service) Address(context.Context) error                 { return nil }
func (service) TenantUser(context.Context, string) error      { return nil }
func (service) Field(context.Context, *User) error            { return nil }
func (service) FieldOfField(context.Context, *User) error     { return nil }
func (service) Getter(context.Context, *User) error           { return nil }
func (service) Lower(context.Context, *User) error            { return nil }
func (service) Header(context.Context, *http.Request) error   { return nil }
func (service) Optional(context.Context, *User) error         { return nil }
func (service) Sum(context.Context, *User, string) error      { return nil }
func (service) Parts(context.Context, *User) error            { return nil }
func (service) Charge(context.Context, *User, []string) error { return nil }

// BenchmarkKeys measures a call of each method, which the limiter in this process admits.
func BenchmarkKeys(b *testing.B) {
	s := NewLimitedService(service{}, ratelimit.New(memstore.New()))
	ctx := ratelimit.WithUserID(ratelimit.WithClientIP(context.Background(), "192.0.2.1"), "ann")
	user := &User{ID: 12345, Email: "Ann@example.com", Org: &Org{"acme"}}
	r := &http.Request{Header: http.Header{"X-Api-Key": {"3f1c"}}}
	for _, c := range []struct {
		name string
		call func() error
	}{
		{"Param", func() error { return s.Param(ctx, "+8613800138000") }},
		{"Address", func() error { return s.Address(ctx) }},
		{"TenantUser", func() error { return s.TenantUser(ctx, "acme") }},
		{"Field", func() error { return s.Field(ctx, user) }},
		{"FieldOfField", func() error { return s.FieldOfField(ctx, user) }},
		{"Getter", func() error { return s.Getter(ctx, user) }},
		{"Lower", func() error { return s.Lower(ctx, user) }},
		{"Header", func() error { return s.Header(ctx, r) }},
		{"Optional", func() error { return s.Optional(ctx, user) }},
		{"Sum", func() error { return s.Sum(ctx, user, "main") }},
		{"Parts", func() error { return s.Parts(ctx, user) }},
		{"Charge", func() error { return s.Charge(ctx, user, []string{"a", "b"}) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := c.call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
