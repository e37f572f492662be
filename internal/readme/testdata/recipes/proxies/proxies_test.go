package proxies

import (
	"net/http/httptest"
	"testing"

	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

// The client is 203.0.113.9, which claims to be 192.0.2.66.
func TestProxies(t *testing.T) {
	for name, c := range map[string]struct {
		clients               httplimit.Clients
		remote, header, value string
		want                  string
	}{
		"several":                   {Several, "127.0.0.1:80", "X-Forwarded-For", "192.0.2.66, 203.0.113.9, 10.0.0.1", "203.0.113.9"},
		"around them":               {Several, "203.0.113.9:80", "X-Forwarded-For", "192.0.2.66", "203.0.113.9"},
		"unknown":                   {Unknown, "192.0.2.80:80", "X-Forwarded-For", "192.0.2.66, 203.0.113.9, 192.0.2.81", "203.0.113.9"},
		"unknown, too few":          {Unknown, "192.0.2.80:80", "X-Forwarded-For", "203.0.113.9", ""},
		"socket":                    {Socket, "@", "X-Forwarded-For", "192.0.2.66, 203.0.113.9", "203.0.113.9"},
		"Cloudflare":                {Cloudflare, "198.51.100.7:80", "CF-Connecting-IP", "203.0.113.9", "203.0.113.9"},
		"around Cloudflare":         {Cloudflare, "203.0.113.9:80", "CF-Connecting-IP", "192.0.2.66", "203.0.113.9"},
		"Cloudflare by IPv6":        {Cloudflare, "[2001:db8:cf::1]:80", "CF-Connecting-IP", "203.0.113.9", "203.0.113.9"},
		"Cloudflare and a balancer": {Both, "10.0.0.1:80", "X-Forwarded-For", "192.0.2.66, 203.0.113.9, 198.51.100.7", "203.0.113.9"},
		"around Cloudflare, by it":  {Both, "10.0.0.1:80", "X-Forwarded-For", "192.0.2.66, 203.0.113.9", "203.0.113.9"},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = c.remote
		r.Header.Set(c.header, c.value)
		if got, err := c.clients.Of(r); got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: got %q, %v; expected %q", name, got, err, c.want)
		}
	}
}
