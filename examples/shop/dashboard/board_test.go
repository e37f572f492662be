package main

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestBoard expects that all queries of the dashboard are made, with their variables replaced, and that all answers are drawn.
func TestBoard(t *testing.T) {
	b, err := readBoard("../../../contrib/promlimit/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	asked := 0
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if expr := r.FormValue("query"); expr == "" || strings.Contains(expr, "$") {
			t.Errorf("asked %q", expr)
		}
		io.WriteString(w, `{"data": {"result": [
			{"metric": {"rule": "<search>", "source": "store", "event": "failed"}, "values": [[1000, "1"], [1001, "2.5"], [1002, "NaN"], [1009, "0"]]},
			{"metric": {}, "values": [[1000, "NaN"]]}]}}`)
	}))
	defer prometheus.Close()
	answers, err := b.ask(t.Context(), prometheus.URL, time.Unix(1000, 0), time.Unix(1010, 0))
	if err != nil {
		t.Fatal(err)
	}
	queries := 0
	for i, p := range b.Panels {
		queries += len(p.Targets)
		if len(answers[i]) != 2*len(p.Targets) || len(answers[i][0].points) != 3 {
			t.Errorf("%s: got %+v", p.Title, answers[i])
		}
	}
	if asked != queries {
		t.Errorf("asked %d queries of %d", asked, queries)
	}
	picture := string(b.draw(answers))
	for _, want := range []string{"Decisions", "&lt;search&gt;", "store p99"} {
		if !strings.Contains(picture, want) {
			t.Errorf("%s is not drawn", want)
		}
	}
	requireXML(t, picture)
	requireXML(t, string(b.draw(make([][]series, len(b.Panels)))))
}

func requireXML(t *testing.T, text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestWrongQuery(t *testing.T) {
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"status": "error", "error": "parse error"}`)
	}))
	defer prometheus.Close()
	if _, err := query(t.Context(), prometheus.URL, "x(", time.Now(), time.Now()); err == nil || !strings.Contains(err.Error(), "parse error") {
		t.Error(err)
	}
}

func TestScale(t *testing.T) {
	for value, want := range map[float64]float64{0: 1, 0.9: 1, 1: 1, 1.1: 2, 3: 5, 5: 5, 7: 10, 0.003: 0.005} {
		if got := ceiling(value); got < want*0.999 || got > want*1.001 {
			t.Errorf("the scale for %v ends at %v; expected %v", value, got, want)
		}
	}
}
