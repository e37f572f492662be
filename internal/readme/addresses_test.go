package readme

import (
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/runtime/httplimit"
)

var addressRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (?:`([0-9a-f.:/]+)`|an error) \\| ")

// The table in docs/keys.md says what addresses count as, at the other end of a connection and in both headers.
func TestAddressesCountAsThePageSays(t *testing.T) {
	_, table, _ := strings.Cut(read(t, "../../docs/keys.md"), "### What an address counts as\n")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := addressRow.FindAllStringSubmatch(table, -1)
	if lines := strings.Count(table, "\n| `"); len(rows) != lines || lines < 14 {
		t.Fatalf("the table has %d rows, of which %d can be read; expected at least 14", lines, len(rows))
	}
	proxied := httplimit.ClientIP(netip.MustParsePrefix("10.0.0.0/8"))
	for _, row := range rows {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = row[1]
		if !strings.HasPrefix(row[1], "[") && strings.Count(row[1], ":") > 1 {
			r.RemoteAddr = "[" + row[1] + "]:4711" // as connections give it
		}
		if got, err := httplimit.ClientIP().Of(r); got != row[2] || (err != nil) != (row[2] == "") {
			t.Errorf("connection from %s: got %q, %v; the page says %q", r.RemoteAddr, got, err, row[2])
		}
		want := row[2]
		if want == "" {
			want = "10.0.0.1" // the proxy that wrote it
		}
		r.Header.Add("X-Forwarded-For", "198.51.100.1, "+row[1])
		r.Header.Add("Forwarded", `for=198.51.100.1, for="`+r.RemoteAddr+`"`)
		r.RemoteAddr = "10.0.0.1:80"
		for _, header := range []string{"X-Forwarded-For", "Forwarded"} {
			if got, err := proxied.Header(header).Of(r); got != want || err != nil {
				t.Errorf("%s with %s: got %q, %v; the page says %q", header, row[1], got, err, want)
			}
		}
	}
}
