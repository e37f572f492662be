package promlimit

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// alerts has the fields of alerts.yaml that the tests need.
type alerts struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Alert, Expr, For    string
			Labels, Annotations map[string]string
		}
	}
}

type dashboard struct {
	Title  string
	Panels []struct {
		Title   string
		Targets []struct{ Expr string }
	}
}

// names returns the names of the collector's metrics in queries.
func names() map[string]bool {
	descriptions, all := make(chan *prometheus.Desc), map[string]bool{}
	go func() {
		New().Describe(descriptions)
		close(descriptions)
	}()
	for d := range descriptions {
		name := regexp.MustCompile(`fqName: "(\w+)"`).FindStringSubmatch(d.String())[1]
		histogram := strings.HasSuffix(name, "_seconds")
		all[name], all[name+"_bucket"], all[name+"_count"] = true, histogram, histogram
	}
	return all
}

// requireKnown checks that the metrics and labels of a query exist.
func requireKnown(t *testing.T, where, expr string) {
	t.Helper()
	known, found := names(), regexp.MustCompile(`\bratelimit_\w+`).FindAllString(expr, -1)
	if len(found) == 0 {
		t.Errorf("%s is about no metric: %s", where, expr)
	}
	for _, name := range found {
		if !known[name] {
			t.Errorf("%s: there is no metric %s", where, name)
		}
	}
	for _, label := range regexp.MustCompile(`(\w+)=~?"`).FindAllStringSubmatch(expr, -1) {
		if !strings.Contains("job rule outcome source event by", label[1]) {
			t.Errorf("%s: there is no label %s", where, label[1])
		}
	}
	if strings.Count(expr, "(") != strings.Count(expr, ")") {
		t.Errorf("%s: parentheses do not match in %s", where, expr)
	}
}

// decode reads a file.
func decode(t *testing.T, name string, to any, unmarshal func([]byte, any) error) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err == nil {
		err = unmarshal(text, to)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestAlerts(t *testing.T) {
	var a alerts
	decode(t, "alerts.yaml", &a, yaml.Unmarshal)
	if len(a.Groups) != 1 || len(a.Groups[0].Rules) == 0 {
		t.Fatalf("got %+v", a)
	}
	for _, r := range a.Groups[0].Rules {
		requireKnown(t, r.Alert, r.Expr)
		if r.Alert == "" || r.For == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("incomplete: %+v", r)
		}
	}
}

// watching is a collector that watches a limiter with a beat.
type watching struct{ *Collector }

func (w watching) Collect(to chan<- prometheus.Metric) {
	w.collect(&ratelimit.Status{Read: time.Now(), Rules: []ratelimit.RuleStatus{{Name: "login"}}}, to)
	w.Collector.Collect(to)
}

// TestPage compares the rows of the page on metrics with the collector's metrics.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	c := New()
	c.Observe(t.Context(), &ratelimit.Event{Kind: ratelimit.EventRefused, Waited: 1, Rules: []ratelimit.Outcome{{Rule: "login"}}})
	c.Observe(t.Context(), &ratelimit.Event{Kind: ratelimit.EventAdmitted, Rules: []ratelimit.Outcome{{Rule: "run", Window: "concurrency:1m", Cost: 1, Releases: true}}})
	c.Observe(t.Context(), &ratelimit.Event{Kind: ratelimit.EventAdded, Rules: []ratelimit.Outcome{{Rule: "tokens", CostBefore: 1, Cost: 2}}})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(watching{c})
	families, err := registry.Gather()
	if err != nil || len(families) == 0 {
		t.Fatal(families, err)
	}
	var want []string
	for _, f := range families {
		row := f.GetName() + " " + strings.ToLower(f.GetType().String())
		for _, label := range f.GetMetric()[0].GetLabel() {
			row += " " + label.GetName()
		}
		want = append(want, row)
	}
	if got := rows(string(page)); !slices.Equal(got, want) {
		t.Errorf("the page has\n%s\nthe collector has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// rows returns the metrics that a page has a row for, sorted: name, type and sorted labels.
func rows(page string) []string {
	var found []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(ratelimit_\\w+)` \\| (\\w+) \\| (.*?) \\|").FindAllStringSubmatch(page, -1) {
		labels := regexp.MustCompile("`\\w+`").FindAllString(m[3], -1)
		slices.Sort(labels)
		found = append(found, strings.ReplaceAll(strings.Join(append([]string{m[1], m[2]}, labels...), " "), "`", ""))
	}
	slices.Sort(found)
	return found
}

func TestDashboard(t *testing.T) {
	var d dashboard
	decode(t, "grafana.json", &d, json.Unmarshal)
	if len(d.Panels) == 0 {
		t.Fatalf("got %+v", d)
	}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			requireKnown(t, p.Title, target.Expr)
		}
	}
}
