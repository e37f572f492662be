// Package clientip finds the address of the client of a request, although clients can forge headers. It knows nothing of HTTP or gRPC.
package clientip

import (
	"errors"
	"net/netip"
	"strings"
)

// Resolver finds the addresses of clients. The zero Resolver trusts no proxy and keeps IPv6 addresses whole.
type Resolver struct {
	Trusted   []netip.Prefix // the proxies whose headers are trusted; from Prefixes
	Forwarded bool           // the header is Forwarded of RFC 7239, and not a list of addresses such as X-Forwarded-For
	Host      int            // the number of last bits to remove from an IPv6 address
}

// ErrNoAddress is the error for a connection whose other end has no IP address.
var ErrNoAddress = errors.New("the other end of the connection has no IP address")

// Prefixes returns the prefixes in the form that Trusted needs, in which IPv4-mapped IPv6 prefixes become IPv4 prefixes. It returns an
// error if a prefix is not valid.
func Prefixes(prefixes []netip.Prefix) ([]netip.Prefix, error) {
	unmapped := make([]netip.Prefix, len(prefixes))
	for i, p := range prefixes {
		if p.Addr().Is4In6() && p.Bits() >= 96 {
			p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
		}
		if !p.IsValid() {
			return nil, errors.New("a prefix of the trusted proxies is not valid")
		}
		unmapped[i] = p.Masked()
	}
	return unmapped, nil
}

// Client returns the address of the client. The connection comes from remote, an address with or without a port. The lines are the
// values, in order, of the header to which proxies add the address that they are connected to. Client reads them from the right and
// stops at the first address that is not trusted, because the client may have forged everything to the left of it. If it meets an entry
// that is not an address, it returns the address of the last trusted proxy.
func (r Resolver) Client(remote string, lines []string) (string, error) {
	client, ok := parse(remote)
	if !ok {
		return "", ErrNoAddress
	}
	for i := len(lines) - 1; i >= 0; i-- {
		for line, more := lines[i], true; more; {
			if !r.trusts(client) {
				return r.text(client), nil
			}
			var entry string
			line, entry, more = r.last(line)
			hop, ok := parse(entry)
			if !ok {
				return r.text(client), nil
			}
			client = hop
		}
	}
	return r.text(client), nil
}

// Ignores reports whether headers from remote are ignored, because remote is no trusted proxy.
func (r Resolver) Ignores(remote string) bool {
	peer, ok := parse(remote)
	return ok && !r.trusts(peer)
}

func (r Resolver) trusts(a netip.Addr) bool {
	for _, p := range r.Trusted {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// text returns an IPv4 address, or the network of an IPv6 address such as 2001:db8::/64.
func (r Resolver) text(a netip.Addr) string {
	if a.Is4() || r.Host == 0 {
		return a.String()
	}
	return netip.PrefixFrom(a, a.BitLen()-r.Host).Masked().String()
}

// parse parses an address with or without a port. It drops the zone.
func parse(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.Trim(s, " \t"))
	if err != nil {
		s = strings.Trim(s, " \t")
		if inside, ok := strings.CutPrefix(s, "["); ok && strings.HasSuffix(inside, "]") {
			a, err = netip.ParseAddr(strings.TrimSuffix(inside, "]"))
		} else {
			var p netip.AddrPort
			p, err = netip.ParseAddrPort(s)
			a = p.Addr()
		}
	}
	return a.Unmap().WithZone(""), err == nil
}

// last splits the last entry off a line of the header.
func (r Resolver) last(line string) (rest, entry string, more bool) {
	if !r.Forwarded {
		i := strings.LastIndexByte(line, ',')
		return line[:max(0, i)], line[i+1:], i >= 0
	}
	i := lastUnquoted(line, ',')
	return line[:max(0, i)], forwardedFor(line[i+1:]), i >= 0
}
