package farside

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// now is the time of the tests, by both clocks if a response has no Date.
var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// header returns the header of lines such as "Retry-After: 7".
func header(lines ...string) http.Header {
	h := http.Header{}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		h.Add(name, value)
	}
	return h
}

// services are what real services send, as their documentation says; the forms of their values are theirs. docs/outbound.md has the same table.
var services = []struct {
	name, documentation, read string // when the page was read
	status                    int
	lines                     []string
	want                      time.Duration
	remaining                 time.Duration // with WithRemaining, if that is another
}{
	{"GitHub, secondary limit", "docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api", "2026-11-30", 403,
		[]string{"Retry-After: 60", "X-RateLimit-Remaining: 4000", "X-RateLimit-Reset: 1795438800"}, time.Minute, time.Minute},
	{"GitHub, primary limit", "docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api", "2026-11-30", 429,
		[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1795435500"}, 5 * time.Minute, 5 * time.Minute},
	{"GitHub, primary limit", "docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api", "2026-11-30", 403,
		[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1795435500"}, 0, 5 * time.Minute},
	{"GitLab", "docs.gitlab.com/administration/settings/user_and_ip_rate_limits", "2026-11-30", 429,
		[]string{"RateLimit-Remaining: 0", "RateLimit-Reset: 1795435230", "RateLimit-ResetTime: Mon, 23 Nov 2026 12:00:30 GMT", "Retry-After: 30"},
		30 * time.Second, 30 * time.Second},
	{"Shopify REST", "shopify.dev/docs/api/admin-rest/usage/rate-limits", "2026-11-30", 429,
		[]string{"X-Shopify-Shop-Api-Call-Limit: 40/40", "Retry-After: 2.0"}, 2 * time.Second, 2 * time.Second},
	{"Discord", "docs.discord.com/developers/topics/rate-limits", "2026-11-30", 200,
		[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1795435264.500", "X-RateLimit-Reset-After: 64.57"}, 0, 64500 * time.Millisecond},
	{"Discord, shared", "docs.discord.com/developers/topics/rate-limits", "2026-11-30", 429,
		[]string{"X-RateLimit-Remaining: 9", "X-RateLimit-Scope: shared", "Retry-After: 1337"}, 1337 * time.Second, 1337 * time.Second},
	{"X", "docs.x.com/x-api/fundamentals/rate-limits", "2026-11-30", 429,
		[]string{"x-rate-limit-remaining: 0", "x-rate-limit-reset: 1795436100"}, 15 * time.Minute, 15 * time.Minute},
	{"OpenAI", "developers.openai.com/api/docs/guides/rate-limits", "2026-11-30", 200,
		[]string{"x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-requests: 6m0s", "x-ratelimit-remaining-tokens: 100"}, 0, 6 * time.Minute},
	{"Azure OpenAI", "learn.microsoft.com/answers/questions/5625878", "2026-11-30", 200,
		[]string{"x-ratelimit-remaining-requests: 0", "x-ratelimit-limit-requests: -1", "x-ratelimit-reset-requests: 0"}, 0, 0},
	{"Anthropic", "docs.anthropic.com/en/api/rate-limits", "2026-11-30", 200,
		[]string{"anthropic-ratelimit-requests-remaining: 0", "anthropic-ratelimit-requests-reset: 2026-11-23T12:00:59Z"}, 0, 59 * time.Second},
	{"SendGrid", "twilio.com/docs/sendgrid/api-reference/how-to-use-the-sendgrid-v3-api/rate-limits", "2026-11-30", 429,
		[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1795435240"}, 40 * time.Second, 40 * time.Second},
	{"Zendesk", "developer.zendesk.com/documentation/api-basics/best-practices/best-practices-for-avoiding-rate-limiting", "2026-11-30", 200,
		[]string{"ratelimit-remaining: 0", "ratelimit-reset: 41"}, 0, 41 * time.Second},
	{"Okta, concurrent", "developer.okta.com/docs/reference/rl-best-practices", "2026-11-30", 429,
		[]string{"X-Rate-Limit-Limit: 0", "X-Rate-Limit-Remaining: 0", "X-Rate-Limit-Reset: 1795435210"}, 10 * time.Second, 10 * time.Second},
	{"Jira Cloud", "developer.atlassian.com/cloud/jira/platform/rate-limiting", "2026-11-30", 429,
		[]string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2026-11-23T12:05Z"}, 5 * time.Minute, 5 * time.Minute},
	{"Confluence Data Center", "confluence.atlassian.com/conf87/_ratelimiting_httpheaders-1333822054.html", "2026-11-30", 429,
		[]string{"X-RateLimit-Remaining: 1", "retry-after: 0"}, 0, 0},
	{"Cloudflare", "developers.cloudflare.com/fundamentals/api/reference/limits", "2026-11-30", 200,
		[]string{`Ratelimit: "default";r=0;t=30`, `Ratelimit-Policy: "burst";q=100;w=60`}, 0, 30 * time.Second},
	{"Linear", "linear.app/developers/rate-limiting", "2026-11-30", 400,
		[]string{"X-RateLimit-Requests-Remaining: 0", "X-RateLimit-Requests-Reset: 1795438800000"}, 0, time.Hour},
	{"Docker Hub", "docs.docker.com/docker-hub/usage/pulls", "2026-11-30", 429,
		[]string{"ratelimit-limit: 100;w=21600", "ratelimit-remaining: 0;w=21600"}, 0, 0},
	{"AWS", "aws-sdk-go-v2 v1.47.6, aws/retry/middleware.go", "2026-11-30", 400, []string{"X-Amz-Retry-After: 1500"}, 1500 * time.Millisecond, 1500 * time.Millisecond},
	{"Prisjakt, milliseconds", "developer.prisjakt.nu/docs/sections/rate-limit", "2026-11-30", 429,
		[]string{"X-Rate-Limit-Remaining: 0", "X-Rate-Limit-Reset: 600000"}, Longest, Longest}, // a wrong unit: a WARN says the field and the value
}

func TestServices(t *testing.T) {
	for _, s := range services {
		for _, remaining := range []bool{false, true} {
			want := s.want
			if remaining {
				want = s.remaining
			}
			if got := ByFields(s.status, header(s.lines...).Values, now, remaining); got.For != want || len(got.Odd) > 0 || got.For > 0 && got.By == "" {
				t.Errorf("%s, %d %q, with WithRemaining %t: got %+v, want %s", s.name, s.status, s.lines, remaining, got, want)
			}
		}
	}
}

// A Retry-After is read in all its forms: RFC 9110, sections 10.2.3 and 5.6.7, and what services send besides.
func TestRetryAfterField(t *testing.T) {
	const no = -1 // it cannot be read
	for value, want := range map[string]time.Duration{
		"": 0, "7": 7 * time.Second, " 7\t": 7 * time.Second, "0": 0, "1.5": 1500 * time.Millisecond, "2.": 2 * time.Second, "86401": Longest,
		"-1": no, "+1": no, "x": no, "1e3": no, ".": no, ".5": no, "1.2.3": no, "NaN": no, "0x10": no, "-40s": no, "+40s": no, "soon": no, "99999999999999999999": no,
		"40s": 40 * time.Second, "6m0s": 6 * time.Minute, "12ms": 12 * time.Millisecond, "30h": Longest,
		"1795435230": 30 * time.Second, "1795435230.5": 30500 * time.Millisecond, "1795435230000": 30 * time.Second, "1795435170": 0, "3000000000": Longest,
		"Mon, 23 Nov 2026 12:00:30 GMT": 30 * time.Second, "Monday, 23-Nov-26 12:00:30 GMT": 30 * time.Second,
		"Mon Nov 23 12:00:30 2026": 30 * time.Second, "Mon, 23 Nov 2026 11:59:30 GMT": 0,
		"2026-11-23T12:00:30Z": 30 * time.Second, "2026-11-23T13:00:30+01:00": 30 * time.Second, "2026-11-23T12:01Z": time.Minute, "2026-11-23T11:00:00Z": 0,
		"Tue Feb 16 2027 09:02:42 GMT+0100 (Central European Standard Time)": no,
	} {
		got := ByFields(429, header("Retry-After: "+value).Values, now, false)
		if isOdd := len(got.Odd) > 0; isOdd != (want == no) || got.For != max(0, want) {
			t.Errorf("%q: got %+v, want %s", value, got, want)
		}
	}
}

// draft-ietf-httpapi-ratelimit-headers-11, section 4.1, and the drafts around it.
func TestRateLimitField(t *testing.T) {
	for value, want := range map[string]time.Duration{
		`"x";r=0;t=40`: 40 * time.Second, `"x";a=0;w=40`: 40 * time.Second, `"x"; r=0; t=40`: 40 * time.Second, `"x";r=1;t=40`: 0, `"x";r=0`: 0, `"x";r=0;t=0`: 0,
		`"a";r=0;t=5,"b";r=0;t=60, "c";r=3;t=900`: time.Minute, `"a,;r=0;t=7\"";r=0;t=5;pk=:QXBw==:`: 5 * time.Second, `x;r=0;t=5`: 5 * time.Second,
		`"x";r=0;t=3;t=4`: 4 * time.Second, `limit=10, remaining=0, reset=5`: 5 * time.Second, `limit=10, remaining=2, reset=5`: 0,
		// section 7: a malformed field is ignored
		`"x";t=40`: -1, `"x";r=x;t=40`: -1, `"x";r=0;t=-4`: -1, `"x;r=0;t=40`: -1, `100`: -1, `"ann";r=0;t=5,"bob"`: -1,
		`"us\"ann";r=x;t=1`: -1, `"x";r=x, "us\"ann`: -1, `"x";r=x, "ann\`: -1,
	} {
		got := ByFields(429, header("RateLimit: "+value).Values, now, false)
		if isOdd := len(got.Odd) > 0; isOdd != (want < 0) || got.For != max(0, want) {
			t.Errorf("%s: got %+v, want %s", value, got, want)
		}
		for _, odd := range got.Odd {
			if strings.Contains(odd.Value, "ann") {
				t.Errorf("the name of a policy, which may be a caller's, is told: %+v", odd)
			}
		}
	}
	if got := ByFields(429, header(`RateLimit: "a";r=0;t=5`, `RateLimit: "b";r=0;t=6`).Values, now, false); got.For != 6*time.Second {
		t.Errorf("two lines: got %+v", got)
	}
}

// Which status, and which field, counts.
func TestWhatCounts(t *testing.T) {
	const reset = `RateLimit: "x";r=0;t=40`
	for _, c := range []struct {
		status    int
		remaining bool
		lines     string
		want      time.Duration
	}{
		{200, false, "Retry-After: 7", 0}, {302, false, "Retry-After: 7", 0}, {200, true, "Retry-After: 7", 0}, {200, false, reset, 0}, {200, true, reset, 40},
		{304, true, reset, 40}, {403, false, reset, 0}, {403, true, reset, 40}, {503, false, reset, 40}, {500, false, "Retry-After: 7", 7}, {0, false, reset, 40},
		{429, false, "Retry-After: 7|" + reset, 7}, // section 7 of the draft: Retry-After MUST take precedence
		{429, true, "Retry-After: 0|" + reset, 0}, {429, false, "Retry-After: soon|" + reset, 40}, {429, false, "Retry-After: 9|Retry-After-Ms: 7000", 7},
		{200, true, "Age: 3|" + reset, 0}, {200, true, "Age: 0|" + reset, 40}, // section 7.3: a positive age
		{200, true, "RateLimit-Reset: 40", 0}, {429, false, "X-RateLimit-Reset: 40", 0}, {429, false, "X-RateLimit-Remaining: 1|X-RateLimit-Reset: 40", 0},
		{429, false, "X-RateLimit-Remaining: -1|X-RateLimit-Reset: 40", 0}, {429, false, "X-RateLimit-Remaining: 0.0|X-RateLimit-Reset: 40", 40},
		{429, false, "X-RateLimit-Remaining: 0|X-RateLimit-Reset: 1795435170", 0}, // past
		{429, false, "X-RateLimit-Remaining: 0|X-RateLimit-Reset: Mon, 23 Nov 2026 12:00:40 GMT", 40},
		{429, false, "X-RateLimit-Remaining: 0|X-RateLimit-Reset: 30|X-Rate-Limit-Remaining: 0|X-Rate-Limit-Reset: 40", 40},
	} {
		if got := ByFields(c.status, header(strings.Split(c.lines, "|")...).Values, now, c.remaining); got.For != c.want*time.Second {
			t.Errorf("%d %s, with WithRemaining %t: got %+v, want %d s", c.status, c.lines, c.remaining, got, c.want)
		}
	}
}

// A time goes by the Date of the response, and by what a cache has added: RFC 9111, section 4.2.3. Without one that can be read it goes by our clock.
func TestClockOfTheFarSide(t *testing.T) {
	for lines, want := range map[string]time.Duration{
		"Date: Mon, 23 Nov 2026 11:50:00 GMT|Retry-After: Mon, 23 Nov 2026 11:50:30 GMT":             30,
		"Date: Mon, 23 Nov 2026 12:10:00 GMT|Retry-After: 2026-11-23T12:10:30Z":                      30,
		"Date: Mon, 23 Nov 2026 12:10:00 GMT|X-RateLimit-Remaining: 0|X-RateLimit-Reset: 1795435830": 30,
		"Date: Mon, 23 Nov 2026 11:50:00 GMT|Age: 10|Retry-After: Mon, 23 Nov 2026 11:50:30 GMT":     20,
		"Date: yesterday|Retry-After: Mon, 23 Nov 2026 12:00:30 GMT":                                 30,
		"Date: Mon, 23 Nov 2026 11:50:00 GMT|Retry-After: 30":                                        30,
	} {
		if got := ByFields(429, header(strings.Split(lines, "|")...).Values, now, false); got.For != want*time.Second {
			t.Errorf("%s: got %+v, want %d s", lines, got, want)
		}
	}
}

// What is shown of a value is escaped and cut.
func TestShownValues(t *testing.T) {
	for _, name := range []string{"Retry-After", "RateLimit", "X-RateLimit-Remaining"} {
		got := ByFields(429, header(name+": \x1b[2J"+strings.Repeat("x", 1<<16)).Values, now, true)
		if len(got.Odd) != 1 || len(got.Odd[0].Value) > maxValue+len("…") || strings.Contains(got.Odd[0].Value, "\x1b") {
			t.Errorf("%s: got %q", name, got.Odd)
		}
	}
}

// FuzzFields reads what a far side may send. A date is as package net/http reads it.
func FuzzFields(f *testing.F) {
	for _, s := range services {
		h := header(s.lines...)
		f.Add(s.status, true, h.Get("Retry-After"), h.Get("RateLimit"), h.Get("X-RateLimit-Remaining"), h.Get("X-RateLimit-Reset"), "")
	}
	f.Add(429, false, "Monday, 23-Nov-26 12:00:30 GMT", `"a\"`, "0", "1e9", "Mon, 23 Nov 2026 12:00:30 GMT")
	f.Fuzz(func(t *testing.T, status int, remaining bool, after, limit, left, reset, date string) {
		h := http.Header{"Retry-After": {after}, "Ratelimit": {limit}, "X-Ratelimit-Remaining": {left}, "X-Ratelimit-Reset": {reset}, "Retry-After-Ms": {reset},
			"Date": {date}, "Age": {left}}
		got := ByFields(status, h.Values, now, remaining)
		if got.For < 0 || got.For > Longest || got.For > 0 && got.By == "" || len(got.By) > 200 {
			t.Errorf("got %+v", got)
		}
		want, err := http.ParseTime(after)
		if got := ByFields(429, header("Retry-After: "+after).Values, now, false); err == nil && got.For != min(max(0, want.Sub(now)), Longest) {
			t.Errorf("%q: got %+v", after, got)
		}
	})
}
