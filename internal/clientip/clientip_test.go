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
	}
	if _, err := Prefixes([]netip.Prefix{{}}); err == nil {
		t.Error("the zero prefix was taken")
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
		client := rapid.SampledFrom([]string{"198.51.100.1", "[2001:db8::1]:4711", "[::ffff:198.51.100.1]:80"}).Draw(t, "client")
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
