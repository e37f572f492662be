// Package clientip finds the address of the client of a request, although clients can forge headers. It knows nothing of HTTP or gRPC.
package clientip

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// Resolver finds the addresses of clients. The zero Resolver trusts no proxy and keeps IPv6 addresses whole.
type Resolver struct {
	Trusted   []netip.Prefix // the proxies whose headers are trusted; from Prefixes
	Socket    bool           // who connects by a Unix socket is such a proxy
	Hops      int            // if above 0, the client is this entry of the header from the right, whoever the proxies are
	Header    string         // the name of the header, for errors
	Forwarded bool           // the header is Forwarded of RFC 7239, and not a list of addresses such as X-Forwarded-For
	Host      int            // the number of last bits to remove from an IPv6 address
}

// ErrNoAddress is the error for a connection whose other end has no IP address.
var ErrNoAddress = errors.New("the other end of the connection has no IP address. If it is your proxy on a Unix socket, trust it by " +
	"httplimit.ClientIP().Socket()")

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
// stops at the first address that is not trusted, because the client may have forged everything to the left of it; with Hops, at that entry.
// An entry that is not an address counts as the address of the proxy that wrote it, and without Hops Client stops there.
func (r Resolver) Client(remote string, lines []string) (string, error) {
	client, ok := parse(remote)
	if !ok && !(r.Socket && isSocket(remote)) && r.Hops == 0 {
		return "", ErrNoAddress
	}
	entries := 0
	for i := len(lines) - 1; i >= 0; i-- {
		for line, more := lines[i], true; more; {
			if r.Hops == 0 && client.IsValid() && !r.trusts(client) {
				return r.text(client), nil
			}
			var entry string
			line, entry, more = r.last(line)
			hop, ok := parse(entry)
			if ok {
				client = hop
			}
			if entries++; entries == r.Hops || r.Hops == 0 && !ok {
				return r.found(client)
			}
		}
	}
	if entries < r.Hops {
		return "", fmt.Errorf("the header %s has %d addresses; expected %d, the number of hops", r.Header, entries, r.Hops)
	}
	return r.found(client)
}

// found returns the text of an address, or an error if there is none.
func (r Resolver) found(client netip.Addr) (string, error) {
	if !client.IsValid() {
		return "", fmt.Errorf("the header %s has no address of the client; let the proxy set it", r.Header)
	}
	return r.text(client), nil
}

// isSocket reports whether remote is the other end of a Unix socket: without a name, with an abstract one, or with a path.
func isSocket(remote string) bool {
	return remote == "" || remote[0] == '@' || strings.ContainsAny(remote, `/\`)
}

// Ignores reports whether headers from remote are ignored, because remote is no trusted proxy.
func (r Resolver) Ignores(remote string) bool {
	peer, ok := parse(remote)
	return ok && r.Hops == 0 && !r.trusts(peer)
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
	a = carried(a)
	if a.Is4() || r.Host == 0 {
		return a.String()
	}
	return netip.PrefixFrom(a, a.BitLen()-r.Host).Masked().String()
}

// carriers are the networks whose addresses carry the IPv4 address of their host. A sender chooses these bits, so the address that is carried
// makes nobody a trusted proxy.
//
// Addresses under 64:ff9b:1::/48 (RFC 8215) carry one, too, but only their operator knows where. IPv4-compatible addresses (RFC 4291, section
// 2.5.5.1) are used by nobody.
var carriers = []struct {
	network netip.Prefix
	at      int  // the first byte of the IPv4 address
	flip    byte // to XOR each byte with
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12, 0},    // translated: RFC 6052, section 2.1
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12, 0}, // translated: RFC 2765, section 2.1
	{netip.MustParsePrefix("2002::/16"), 2, 0},        // 6to4: RFC 3056, section 2
	{netip.MustParsePrefix("2001::/32"), 12, 0xff},    // Teredo: RFC 4380, section 4
}

// carried returns the IPv4 address that an IPv6 address carries, or the address itself. Mapped ones are IPv4 addresses already.
func carried(a netip.Addr) netip.Addr {
	for _, c := range carriers {
		if c.network.Contains(a) {
			bytes, v4 := a.As16(), [4]byte{}
			for i := range v4 {
				v4[i] = bytes[c.at+i] ^ c.flip
			}
			return netip.AddrFrom4(v4)
		}
	}
	return a
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
