package httplimit

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"

	"github.com/ratelimit-go/ratelimit/internal/clientip"
	"github.com/ratelimit-go/ratelimit/internal/decide"
	"github.com/ratelimit-go/ratelimit/internal/httprequest"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// Clients finds the address of the client that sent a request. [ClientIP] makes one.
type Clients struct {
	resolver clientip.Resolver
	warned   *atomic.Bool // an ignored header was logged
}

// ClientIP returns the Clients of a server. Without trusted prefixes the client is the other end of the connection, which nobody can
// forge. Behind proxies of your own, trust exactly their prefixes: the client is then the last address in X-Forwarded-For that is not
// trusted. The addresses before it are ignored, because a client can forge them. IPv6 addresses are cut to their network of 64 bits, because a
// single client may have all of it. One that carries the IPv4 address of the client counts as that: mapped (RFC 4291), translated (RFC 6052,
// RFC 2765), 6to4 (RFC 3056) and Teredo (RFC 4380). ClientIP panics if a prefix is not valid.
//
// If the header comes from an address that is not trusted, one line is logged by slog.Default: perhaps a prefix is missing.
func ClientIP(trusted ...netip.Prefix) Clients {
	prefixes, err := clientip.Prefixes(trusted)
	if err != nil {
		panic("httplimit.ClientIP: " + err.Error())
	}
	return Clients{clientip.Resolver{Trusted: prefixes, Header: "X-Forwarded-For", Host: 64}, new(atomic.Bool)}
}

// Header returns Clients that read the named header instead of X-Forwarded-For. It must be a header that your proxies set or add to. Forwarded
// is read as in RFC 7239, any other header as a list of addresses.
func (c Clients) Header(name string) Clients {
	c.resolver.Header, c.resolver.Forwarded = name, strings.EqualFold(name, "Forwarded")
	return c
}

// Socket returns Clients that trust who connects by a Unix socket, as a proxy on the same machine does: the client is the last address in the
// header that is not trusted. It is an error if the header has none. Let nobody but the proxy open the socket. Other connections are
// trusted by their prefixes, as without Socket.
func (c Clients) Socket() Clients {
	c.resolver.Socket = true
	return c
}

// Hops returns Clients that take the address number n from the right of the header, whoever the proxies are. Behind a load balancer that adds
// the address of the client, and a proxy that adds that of the load balancer, n is 2: of "192.0.2.66, 203.0.113.9, 10.0.0.1", the client is
// 203.0.113.9. It is an error if the header has fewer addresses. Hops goes by the header alone, by neither trusted prefixes nor Socket: who gets
// past a proxy chooses the address. Let nobody connect but the proxies. Hops panics if n is less than 1.
func (c Clients) Hops(n int) Clients {
	if n < 1 {
		panic(fmt.Sprintf("httplimit.Clients.Hops: found %d; expected at least 1", n))
	}
	c.resolver.Hops = n
	return c
}

// IPv6Bits returns Clients that cut IPv6 addresses to a network of the given number of bits, instead of 64. With 128 the addresses stay
// whole. IPv6Bits panics if the number is outside 1 to 128.
func (c Clients) IPv6Bits(bits int) Clients {
	if bits < 1 || bits > 128 {
		panic(fmt.Sprintf("httplimit.Clients.IPv6Bits: found %d; expected 1 to 128", bits))
	}
	c.resolver.Host = 128 - bits
	return c
}

// Of returns the address of the client that sends r, such as 203.0.113.9 or 2001:db8::/64. It is an error if r.RemoteAddr has no IP
// address, as on a Unix socket, and neither [Clients.Socket] nor [Clients.Hops] finds one in the header; or if the header has too few for Hops.
// The program is at fault then, not the client: as the key of a [Middleware], the error makes a *ratelimit.KeyError that is Missing.
func (c Clients) Of(r *http.Request) (string, error) {
	return c.OfPeer(r.RemoteAddr, r.Header.Values)
}

// OfPeer is [Clients.Of] for other protocols: remote is the address of the other end of the connection, and values returns the lines of a
// header.
func (c Clients) OfPeer(remote string, values func(header string) []string) (string, error) {
	lines := values(c.resolver.Header)
	if len(lines) > 0 && c.warned != nil && !c.warned.Load() && c.resolver.Ignores(remote) && !c.warned.Swap(true) {
		slog.Warn("httplimit: the header of a connection is ignored, because the other end is no trusted proxy. If it is yours, name its prefix in "+
			"httplimit.ClientIP; otherwise all its clients share one budget", "header", c.resolver.Header, "from", remote)
	}
	ip, err := c.resolver.Client(remote, lines)
	if err != nil {
		return "", decide.Missing(err.Error())
	}
	return ip, nil
}

// Handler returns a handler that calls next with the client's address in the context, where clientIP(ctx) in directives finds it. If there is
// no address, rules that need it refuse the call with a *ratelimit.KeyError. What next sets in its request, such as the Pattern and the path
// values of a router, is in the request of the outer handlers when it has ended. Handler panics if next is nil.
func (c Clients) Handler(next http.Handler) http.Handler {
	next = wrap.Next("httplimit.Clients", next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ip, err := c.Of(r)
		if err != nil {
			next.ServeHTTP(w, r)
			return
		}
		inner := r.WithContext(ratelimit.WithClientIP(r.Context(), ip))
		defer httprequest.Return(r, inner)
		next.ServeHTTP(w, inner)
	})
}
