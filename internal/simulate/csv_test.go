package simulate

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCSV(t *testing.T) {
	const text = "Timestamp,key,cost\n2026-03-02T09:00:02+08:00,ann,3\n2026-03-02T01:00:00Z, bob\n1772413201.000001,ann,\n" + `1772413201,"a,b",0` + "\n"
	nine := time.Date(2026, 3, 2, 9, 0, 0, 0, time.FixedZone("", 8*3600))
	for _, test := range []struct {
		span   Span
		length time.Duration
		calls  string
	}{
		{Span{}, 2*time.Second + time.Microsecond, "0s bob -1; 1s a,b 0; 1.000001s ann -1; 2s ann 3"},
		{Span{Start: nine, Length: 2 * time.Second}, 2 * time.Second, "0s bob -1; 1s a,b 0; 1.000001s ann -1"},
		{Span{Start: nine.Add(time.Second)}, time.Second + time.Microsecond, "0s a,b 0; 1µs ann -1; 1s ann 3"},
		{Span{Start: nine.Add(-time.Hour), Length: 2 * time.Hour}, 2 * time.Hour, "1h0m0s bob -1; 1h0m1s a,b 0; 1h0m1.000001s ann -1; 1h0m2s ann 3"},
	} {
		l, err := ReadCSV(strings.NewReader(text), test.span)
		if err != nil {
			t.Fatal(err)
		}
		var calls []string
		for _, c := range l.Calls {
			calls = append(calls, fmt.Sprint(c.After, " ", l.Keys[c.Key], " ", c.Cost))
		}
		if got := strings.Join(calls, "; "); got != test.calls || l.Length != test.length {
			t.Errorf("%+v: %s long, calls %s\nexpected %s, %s", test.span, l.Length, got, test.length, test.calls)
		}
	}
}

// The columns of a file whose first line names them come in any order.
func TestNamedColumns(t *testing.T) {
	l, err := ReadCSV(strings.NewReader("cost,Timestamp,member,key\n3,1,x,ann\n,2\n"), Span{})
	if err != nil {
		t.Fatal(err)
	}
	if c := l.Calls[0]; c.Cost != 3 || l.Keys[c.Key] != "ann" || l.Members[c.Member] != "x" || l.without["cost"] != 3 || l.without["key"] != 3 || l.without["member"] != 3 {
		t.Errorf("%+v", l)
	}
}

// A spreadsheet may begin a file with a byte order mark, end its lines with CRLF, and begin names with a capital.
func TestCSVOfSpreadsheet(t *testing.T) {
	for _, text := range []string{"\ufeffTimestamp,Key\r\n1,ann\r\n", "\ufeff\"TIMESTAMP\",\"KEY\"\r\n1,ann\r", "\ufeff1,ann\r\n"} {
		l, err := ReadCSV(strings.NewReader(text), Span{})
		if err != nil || len(l.Calls) != 1 || l.Keys[0] != "ann" {
			t.Errorf("%q: %+v, %v", text, l, err)
		}
	}
}

func TestWrongCSV(t *testing.T) {
	for text, want := range map[string]string{
		"":                                 "found no calls",
		"timestamp\n":                      "found no calls",
		"time\n":                           `line 1: the timestamp is "time"; expected one such as 2026-03-02T09:00:00Z, or seconds`,
		"1,a\n\ntimestamp\n":               `line 3: the timestamp is "timestamp"`,
		"timestamp;key\n1;a\n":             "line 1: the first line has one column; columns are separated by commas",
		"1\ta\n":                           "line 1: the first line has one column; columns are separated by commas",
		"key,timestamp,Key\na,1,b\n":       `line 1: found two columns "key"; expected each name once`,
		"timestamp,TIMESTAMP\n1,1\n":       `line 1: found two columns "timestamp"`,
		"1,a,1,x,2,y\n":                    "line 1: found 6 fields; expected timestamp,key,cost,member,anchor",
		"1,a,1,x,soon\n":                   `line 1: the anchor is "soon"; expected one such as 2026-03-02T09:00:00Z, or seconds since 1970`,
		"1,a,1,x,0001-01-01T00:00:00Z\n":   `line 1: the anchor is "0001-01-01T00:00:00Z", which is the zero time; leave the field empty`,
		"1,a,1,x,-9e9\n2,a,1,x,-9.1e9\n":   `line 2: the anchor is "-9.1e9"`,
		"1,a,-1\n":                         `line 1: the cost is "-1"; expected an integer of at least 0`,
		"1,a\n2,a,1.5\n":                   `line 2: the cost is "1.5"`,
		"-1\n":                             `the timestamp is "-1"`,
		"NaN\n":                            `the timestamp is "NaN"`,
		"1e300\n":                          `the timestamp is "1e300"`,
		"1969-12-31T23:59:59Z\n":           `the timestamp is "1969-12-31T23:59:59Z"`,
		"timestamp,user\n1,a\n":            `line 1: found the column "user"; expected timestamp, key, cost, member, anchor; other columns are for -against`,
		"\n\"k\n\",timestamp\n1,a\n":       `line 2: found the column "k\n"`,
		"key,timestamp\na,1,x\n":           "line 2: found 3 fields; expected key,timestamp",
		"1,\"a\n":                          `extraneous or missing " in quoted-field`,
		"1\n8999999999\n":                  "at most 3660d are possible",
		"1\n2255-03-14T16:00:01Z\n":        `line 2: the timestamp is "2255-03-14T16:00:01Z"`,
		"1\n9000000000\n":                  `line 2: the timestamp is "9000000000"`,
		"1,\"\x1b[2J\"\n\"\x1b[2J\"\n":     `the timestamp is "\x1b[2J"`,
		"1,\xff\n2,a,99999999999999999999": `the cost is "99999999999999999999"`,
	} {
		if _, err := ReadCSV(strings.NewReader(text), Span{}); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: error %v; expected %s", text, err, want)
		}
	}
	if _, err := ReadCSV(strings.NewReader("1\n"), Span{Start: time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC)}); err == nil || !strings.Contains(err.Error(), "starts at 1600") {
		t.Errorf("got error %v", err)
	}
	if _, err := ReadCSV(strings.NewReader("1\n"), Span{Start: time.Unix(2, 0).UTC()}); err == nil || !strings.Contains(err.Error(), "found no calls from 1970-01-01T00:00:02Z on") {
		t.Error(err)
	}
	name := filepath.Join(t.TempDir(), "calls.csv")
	if err := os.WriteFile(name, []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenCSV(name, Span{}); err == nil || !strings.HasPrefix(err.Error(), name+": line 1: ") {
		t.Error(err)
	}
}
