package clientip

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func proxies(t interface{ Fatal(...any) }, prefixes ...string) []netip.Prefix {
	var list []netip.Prefix
	for _, p := range prefixes {
		list = append(list, netip.MustParsePrefix(p))
	}
	list, err := Prefixes(list)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestClient(t *testing.T) {
	for _, test := range []struct {
		name, remote string
		lines        []string
		want         string
	}{
		{"a port", "203.0.113.9:4711", nil, "203.0.113.9"},
		{"no port", "203.0.113.9", nil, "203.0.113.9"},
		{"IPv6 is cut", "[2001:db8:1:2:3:4:5:6]:80", nil, "2001:db8:1:2::/64"},
		{"a zone goes", "[fe80::1%eth0]:80", nil, "fe80::/64"},
		{"a mapped address is IPv4", "[::ffff:203.0.113.9]:80", nil, "203.0.113.9"},
		{"nobody trusts a stranger", "203.0.113.9:1", []string{"198.51.100.1"}, "203.0.113.9"},
		{"one proxy", "10.0.0.1:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"a trusted mapped address", "[::ffff:10.0.0.1]:1", []string{"198.51.100.1"}, "198.51.100.1"},
		{"a forged entry", "10.0.0.1:1", []string{"192.0.2.66, 198.51.100.1"}, "198.51.100.1"},
		{"two proxies", "10.0.0.1:1", []string{"192.0.2.66, 198.51.100.1,10.0.0.2"}, "198.51.100.1"},
		{"several lines", "10.0.0.1:1", []string{"192.0.2.66", "198.51.100.1", "10.0.0.2"}, "198.51.100.1"},
		{"ports and brackets", "10.0.0.1:1", []string{"[2001:db8::1]:9, 10.0.0.2:80"}, "2001:db8::/64"},
		{"brackets alone", "10.0.0.1:1", []string{"[2001:db8::1]"}, "2001:db8::/64"},
		{"no address", "10.0.0.1:1", []string{"198.51.100.1, unknown, 10.0.0.2"}, "10.0.0.2"},
		{"an empty entry", "10.0.0.1:1", []string{"198.51.100.1,"}, "10.0.0.1"},
		{"an empty line", "10.0.0.1:1", []string{"198.51.100.1", ""}, "10.0.0.1"},
		{"proxies only", "10.0.0.1:1", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3"},
		{"no header", "10.0.0.1:1", nil, "10.0.0.1"},
	} {
		r := Resolver{Trusted: proxies(t, "::ffff:10.0.0.0/104"), Host: 64}
		if got, err := r.Client(test.remote, test.lines); got != test.want || err != nil {
			t.Errorf("%s: got %q, %v; expected %q", test.name, got, err, test.want)
		}
	}
}

func TestForwarded(t *testing.T) {
	for line, want := range map[string]string{
		`for=198.51.100.1`: "198.51.100.1",
		`For="198.51.100.1:80"; proto=https;by=10.0.0.1`: "198.51.100.1",
		`for="[2001:db8::1]:80"`:                         "2001:db8::1",
		`for=192.0.2.66, for=198.51.100.1`:               "198.51.100.1",
		`for=", for=198.51.100.1`:                        "198.51.100.1",
		`for=198.51.100.1;host="a, for=192.0.2.66"`:      "198.51.100.1",
		`for=198.51.100.1;host="a\", for=192.0.2.66"`:    "198.51.100.1",
		`for=198.51.100.1;host="a\\", for=10.0.0.2`:      "198.51.100.1",
		`for=198.51.100.1;host="x;for=192.0.2.66"`:       "198.51.100.1",
		`for=198.51.100.1, for=_hidden`:                  "10.0.0.1",
		`for=unknown`:                                    "10.0.0.1",
		`for=192.0.2.66;for=198.51.100.1`:                "10.0.0.1",
		`proto=https`:                                    "10.0.0.1",
		`198.51.100.1`:                                   "10.0.0.1",
	} {
		r := Resolver{Trusted: proxies(t, "10.0.0.0/8"), Forwarded: true}
		if got, err := r.Client("10.0.0.1:1", []string{line}); got != want || err != nil {
			t.Errorf("%s: got %q, %v; expected %q", line, got, err, want)
		}
	}
}

func TestNoAddress(t *testing.T) {
	for _, remote := range []string{"", "@", "/run/socket", "example.com:80", "10.0.0.1:x", "[", "]"} {
		if got, err := (Resolver{}).Client(remote, []string{"198.51.100.1"}); got != "" || err != ErrNoAddress {
			t.Errorf("%q: got %q, %v", remote, got, err)
		}
		if got, err := (Resolver{Socket: true}).Client(remote, []string{"198.51.100.1"}); (err == nil) != isSocket(remote) {
			t.Errorf("%q, and sockets are trusted: got %q, %v", remote, got, err)
		}
	}
	if _, err := Prefixes([]netip.Prefix{{}}); err == nil {
		t.Error("the zero prefix was taken")
	}
}

// The peer of a Unix socket is a trusted proxy without an address.
func TestSocket(t *testing.T) {
	const missing = "the header X-Forwarded-For has no address of the client; let the proxy set it"
	for _, test := range []struct {
		name, remote string
		lines        []string
		want, err    string
	}{
		{"one address", "@", []string{"198.51.100.1"}, "198.51.100.1", ""},
		{"no name", "", []string{"198.51.100.1"}, "198.51.100.1", ""},
		{"an abstract name", "@proxy", []string{"198.51.100.1"}, "198.51.100.1", ""},
		{"a path", "/run/proxy.sock", []string{"198.51.100.1"}, "198.51.100.1", ""},
		{"a path of Windows", `C:\proxy.sock`, []string{"198.51.100.1"}, "198.51.100.1", ""},
		{"a forged entry", "@", []string{"192.0.2.66, 198.51.100.1"}, "198.51.100.1", ""},
		{"a trusted proxy before it", "@", []string{"192.0.2.66, 198.51.100.1", "10.0.0.2"}, "198.51.100.1", ""},
		{"proxies only", "@", []string{"10.0.0.3, 10.0.0.2"}, "10.0.0.3", ""},
		{"no address behind a proxy", "@", []string{"198.51.100.1, unknown, 10.0.0.2"}, "10.0.0.2", ""},
		{"no header", "@", nil, "", missing},
		{"no address", "@", []string{"198.51.100.1, unknown"}, "", missing},
		{"an empty header", "@", []string{""}, "", missing},
		{"a stranger by TCP", "203.0.113.9:1", []string{"198.51.100.1"}, "203.0.113.9", ""},
		{"a proxy by TCP", "10.0.0.1:1", []string{"198.51.100.1"}, "198.51.100.1", ""},
	} {
		r := Resolver{Trusted: proxies(t, "10.0.0.0/8"), Socket: true, Header: "X-Forwarded-For", Host: 64}
		if got, err := r.Client(test.remote, test.lines); got != test.want || text(err) != test.err {
			t.Errorf("%s: got %q, %v; expected %q, %s", test.name, got, err, test.want, test.err)
		}
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// The client is the entry of a number from the right, whoever is connected. All lines are one list.
func TestHops(t *testing.T) {
	for _, test := range []struct {
		name, remote string
		hops         int
		lines        []string
		want, err    string
	}{
		{"one", "203.0.113.9:1", 1, []string{"192.0.2.66, 198.51.100.1"}, "198.51.100.1", ""},
		{"two", "203.0.113.9:1", 2, []string{"192.0.2.66, 198.51.100.1, 203.0.113.1"}, "198.51.100.1", ""},
		{"two lines", "203.0.113.9:1", 2, []string{"192.0.2.66, 198.51.100.1", "203.0.113.1"}, "198.51.100.1", ""},
		{"three lines", "203.0.113.9:1", 3, []string{"198.51.100.1", "203.0.113.2", "203.0.113.1"}, "198.51.100.1", ""},
		{"a trusted address counts, too", "10.0.0.1:1", 1, []string{"198.51.100.1, 10.0.0.2"}, "10.0.0.2", ""},
		{"a socket", "@", 2, []string{"198.51.100.1, 203.0.113.1"}, "198.51.100.1", ""},
		{"IPv6 is cut", "@", 1, []string{"[2001:db8:1:2:3::4]:80"}, "2001:db8:1:2::/64", ""},
		{"no address to the right", "10.0.0.1:1", 2, []string{"198.51.100.1, unknown"}, "198.51.100.1", ""},
		{"no address: the proxy that wrote it", "10.0.0.1:1", 2, []string{"unknown, 203.0.113.1"}, "203.0.113.1", ""},
		{"no address: the peer", "10.0.0.1:1", 1, []string{"unknown"}, "10.0.0.1", ""},
		{"no address: a socket's peer", "@", 1, []string{"unknown"}, "", "the header X-Forwarded-For has no address of the client; let the proxy set it"},
		{"no header", "10.0.0.1:1", 1, nil, "", "the header X-Forwarded-For has 0 addresses; expected 1, the number of hops"},
		{"too few", "10.0.0.1:1", 3, []string{"198.51.100.1", "10.0.0.2"}, "", "the header X-Forwarded-For has 2 addresses; expected 3, the number of hops"},
	} {
		r := Resolver{Trusted: proxies(t, "10.0.0.0/8"), Hops: test.hops, Header: "X-Forwarded-For", Host: 64}
		if got, err := r.Client(test.remote, test.lines); got != test.want || text(err) != test.err {
			t.Errorf("%s: got %q, %v; expected %q, %s", test.name, got, err, test.want, test.err)
		}
	}
	r := Resolver{Hops: 2, Forwarded: true, Header: "Forwarded"}
	if got, err := r.Client("@", []string{`for=192.0.2.66, for="198.51.100.1:80";proto=https`, `for=203.0.113.1`}); got != "198.51.100.1" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// An IPv6 address that carries an IPv4 address counts as it, whatever the number of bits, but makes no trusted proxy.
func TestCarriedAddresses(t *testing.T) {
	for _, test := range []struct{ source, address, want string }{
		{"RFC 4291, section 2.5.5.2: mapped", "::ffff:192.0.2.33", "192.0.2.33"},
		{"RFC 6052, section 2.4: the well-known prefix", "64:ff9b::192.0.2.33", "192.0.2.33"},
		{"RFC 6052, section 2.2: other prefixes belong to networks", "2001:db8:122:344::192.0.2.33", "2001:db8:122:344::/64"},
		{"RFC 2765, section 2.1: translated", "::ffff:0:192.0.2.33", "192.0.2.33"},
		{"RFC 3056, section 2: 6to4", "2002:c000:221:1::1", "192.0.2.33"},
		{"RFC 4380, section 4: Teredo", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "192.0.2.45"},
		{"beside Teredo", "2001:1:4136:e378:8000:63bf:3fff:fdd2", "2001:1:4136:e378::/64"},
		{"RFC 8215: only the operator can tell", "64:ff9b:1::192.0.2.33", "64:ff9b:1::/64"},
		{"beside RFC 6052", "64:ff9b::1:192.0.2.33", "64:ff9b::/64"},
		{"beside RFC 2765", "::fffe:0:192.0.2.33", "::/64"},
		{"RFC 4291, section 2.5.5.1: compatible, deprecated", "::192.0.2.33", "::/64"},
		{"loopback", "::1", "::/64"},
		{"unspecified", "::", "::/64"},
	} {
		r := Resolver{Trusted: proxies(t, "10.0.0.0/8"), Host: 64}
		f := Resolver{Trusted: r.Trusted, Forwarded: true, Host: 64}
		for name, got := range map[string]func() (string, error){
			"remote":       func() (string, error) { return r.Client("["+test.address+"]:80", []string{"198.51.100.1"}) },
			"zone":         func() (string, error) { return r.Client("["+test.address+"%eth0]:80", nil) },
			"header":       func() (string, error) { return r.Client("10.0.0.1:80", []string{test.address}) },
			"hop":          func() (string, error) { return Resolver{Hops: 1, Host: 64}.Client("@", []string{test.address}) },
			"Forwarded":    func() (string, error) { return f.Client("10.0.0.1:80", []string{`for="[` + test.address + `]:80"`}) },
			"a proxy's v4": func() (string, error) { return r.Client("10.0.0.1:80", []string{"198.51.100.1, " + test.address}) },
		} {
			if address, err := got(); address != test.want || err != nil {
				t.Errorf("%s, %s in %s: got %q, %v; expected %s", test.source, test.address, name, address, err, test.want)
			}
		}
	}
	r := Resolver{Trusted: proxies(t, "10.0.0.0/8")}
	for remote, want := range map[string]string{"::ffff:10.0.0.1": "198.51.100.1", "64:ff9b::10.0.0.1": "10.0.0.1", "2002:a00:1::1": "10.0.0.1"} {
		if got, err := r.Client(remote, []string{"198.51.100.1"}); got != want || err != nil {
			t.Errorf("%s as a proxy: got %q, %v; expected %s", remote, got, err, want)
		}
	}
	if got, err := r.Client("2002:c000:221:1::1", nil); got != "192.0.2.33" || err != nil {
		t.Errorf("with 128 bits: got %q, %v", got, err)
	}
}

// Whatever a client writes into the header, its address is the one that the first trusted proxy saw.
func TestForgedHeaderMovesNothing(t *testing.T) {
	trusted := proxies(t, "10.0.0.0/8", "fd00::/8")
	address := rapid.OneOf(
		rapid.SampledFrom([]string{"10.9.9.9", "fd00::9", "192.0.2.66", "unknown", "", `"`, `\`, `for="`, "for=192.0.2.66", "for=10.9.9.9;host=\"", ",", ", "}),
		rapid.String())
	rapid.Check(t, func(t *rapid.T) {
		r := Resolver{Trusted: trusted, Forwarded: rapid.Bool().Draw(t, "forwarded"), Host: 64}
		client := rapid.SampledFrom([]string{"198.51.100.1", "[2001:db8::1]:4711", "[::ffff:198.51.100.1]:80", "[64:ff9b::c633:6401]:80"}).Draw(t, "client")
		want, _ := r.Client(client, nil)
		lines := rapid.SliceOf(rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOf(address).Draw(t, "entries"), ",")
		})).Draw(t, "forged")
		hops := rapid.SliceOfN(rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2:80", "[fd00::1]:80"}), 0, 3).Draw(t, "proxies")
		remote := client
		for _, hop := range hops {
			entry := remote
			if r.Forwarded {
				entry = `for="` + remote + `";host="a\", for=192.0.2.66"`
			}
			if last := len(lines) - 1; last >= 0 && rapid.Bool().Draw(t, "same line") {
				lines[last] += ", " + entry
			} else {
				lines = append(lines, entry)
			}
			remote = hop
		}
		switch {
		case len(hops) > 0 && rapid.Bool().Draw(t, "by hops"):
			r.Trusted, r.Hops = nil, len(hops)
		case len(hops) > 0 && rapid.Bool().Draw(t, "by socket"):
			r.Socket, remote = true, rapid.SampledFrom([]string{"", "@", "@x", "/run/x"}).Draw(t, "socket")
		}
		if got, err := r.Client(remote, lines); got != want || err != nil {
			t.Fatalf("%s behind %q with %q: got %q, %v; expected %q", client, hops, lines, got, err, want)
		}
	})
}

func FuzzForwarded(f *testing.F) {
	for _, seed := range []string{`for=192.0.2.66`, `for="[2001:db8::1]:80";by=_x`, `for="`, `for=a\`, `,`, `;;`, `for="\"`, "for=10.0.0.9"} {
		f.Add(seed)
	}
	trusted := proxies(f, "10.0.0.0/8")
	f.Fuzz(func(t *testing.T, forged string) {
		for _, forwarded := range []bool{true, false} {
			r, entry := Resolver{Trusted: trusted, Forwarded: forwarded, Host: 64}, "198.51.100.1"
			if forwarded {
				entry = "for=" + entry
			}
			for _, lines := range [][]string{{forged, entry}, {forged + "," + entry}} {
				if got, err := r.Client("10.0.0.1:80", lines); got != "198.51.100.1" || err != nil {
					t.Errorf("%q: got %q, %v", lines, got, err)
				}
			}
			got, err := r.Client("10.0.0.1:80", []string{forged})
			if a, _, _ := strings.Cut(got, "/"); err != nil || !netip.MustParseAddr(a).IsValid() {
				t.Errorf("%q: got %q, %v", forged, got, err)
			}
			if got, err := r.Client(forged, nil); err == nil && got == "" {
				t.Errorf("%q: an empty address", forged)
			}
		}
	})
}

// Whatever is connected and whatever the header says, the client is an IPv4 address or an IPv6 network that carries none, or there is an error.
// Nothing before the entry that the hops name changes it.
func FuzzClient(f *testing.F) {
	for _, seed := range [][2]string{
		{"@", "198.51.100.1"}, {"", "unknown, 10.0.0.1"}, {"/run/x", "2002:c000:221::1\n[64:ff9b::1.2.3.4]:80"}, {"[2001::1%x]:80", ""}, {"10.0.0.1:80", ",\n,"},
		{"[::ffff:10.0.0.1]:1", `for="[2001:db8::1]:80";by=_x, for=10.0.0.2`},
	} {
		f.Add(seed[0], seed[1], 1, true, false)
		f.Add(seed[0], seed[1], 0, true, true)
	}
	trusted := proxies(f, "10.0.0.0/8", "fd00::/8")
	f.Fuzz(func(t *testing.T, remote, header string, hops int, socket, forwarded bool) {
		r := Resolver{Trusted: trusted, Socket: socket, Hops: max(0, hops), Forwarded: forwarded, Host: 64}
		lines := strings.Split(header, "\n")
		got, err := r.Client(remote, lines)
		if err != nil {
			if got != "" {
				t.Errorf("got %q and %v", got, err)
			}
			return
		}
		if a, aErr := netip.ParseAddr(got); aErr != nil || !a.Is4() {
			if n, nErr := netip.ParsePrefix(got); nErr != nil || n.Bits() != 64 || n != n.Masked() || n.Addr().Is4() {
				t.Errorf("%q with %q: got %q", remote, header, got)
			}
		}
		if again, err := r.Client(remote, append([]string{"192.0.2.66"}, lines...)); r.Hops > 0 && (again != got || err != nil) {
			t.Errorf("%q with %q: got %q, and %q, %v behind a forged line", remote, header, got, again, err)
		}
	})
}
