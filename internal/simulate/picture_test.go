package simulate

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// A picture is well-formed, the same each time, and contains no scripts or links, whatever the load is.
func TestPicturesAreSafe(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rules, l := rapid.SliceOfN(rapid.Custom(drawRule), 1, 9).Draw(t, "rules"), drawLoad(t)
		for i := range l.Keys {
			l.Keys[i] = "k" + rapid.String().Draw(t, "key")
		}
		rules[0].Text = `"<script>alert(1)</script>` + rapid.String().Draw(t, "text")
		r, err := Run(t.Context(), rules, l)
		if err != nil {
			t.Fatal(err)
		}
		title := rapid.String().Draw(t, "title")
		picture := Draw(title, r, r)
		if !bytes.Equal(picture, Draw(title, r, r)) {
			t.Fatal("a second picture differs")
		}
		checkElements(t, picture)
	})
}

// The longest possible load has a picture, and a table that reports write errors.
func TestLongestLoad(t *testing.T) {
	l := calls(t, fmt.Sprintf("0,a\n%d,a\n", maxLength/time.Second-1))
	r, err := Run(t.Context(), []Rule{{Rule: ratelimit.PerHour(1)}}, l)
	if err != nil {
		t.Fatal(err)
	}
	if picture := Draw("long", r, r); !bytes.Contains(picture, []byte(">730d<")) {
		t.Errorf("it has no label after two years: %s", picture)
	}
	reader, writer := io.Pipe()
	_ = reader.Close()
	if err := r.PrintTable(writer); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got error %v", err)
	}
}

func checkElements(t *rapid.T, picture []byte) {
	d := xml.NewDecoder(bytes.NewReader(picture))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, picture)
		}
		element, ok := token.(xml.StartElement)
		if ok && !strings.Contains(" svg title style rect path text ", " "+element.Name.Local+" ") {
			t.Fatalf("found an element %s", element.Name.Local)
		}
		for _, a := range element.Attr {
			if strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf") {
				t.Fatalf("%s of %s is %s", a.Name.Local, element.Name.Local, a.Value)
			}
		}
	}
}

// Bars and lines stay inside the panels. Otherwise they would cover the text.
func TestScale(t *testing.T) {
	for n, want := range map[int64]int64{1: 1, 9: 9, 10: 10, 11: 20, 99: 100, 100: 100, 672: 700, 901: 1000} {
		if got := ceiling(n); got != want {
			t.Errorf("the scale for %d ends at %d; expected %d", n, got, want)
		}
	}
}
