package promlimit

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.yaml.in/yaml/v3"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/memstore"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// series are the values of each series at the scrapes of a program. Before a series is there, its values are "_".
type series map[string][]string

// scrape adds the values that a registry has now.
func (s series) scrape(t *testing.T, registry *prometheus.Registry, before int) {
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := `{job="shop",instance="a"`
			for _, l := range m.GetLabel() {
				labels += fmt.Sprintf(",%s=%q", l.GetName(), l.GetValue())
			}
			add := func(suffix, more string, value float64) {
				name := f.GetName() + suffix + labels + more + "}"
				for len(s[name]) < before {
					s[name] = append(s[name], "_")
				}
				s[name] = append(s[name], strconv.FormatFloat(value, 'f', -1, 64))
			}
			h := m.GetHistogram()
			if h == nil {
				add("", "", m.GetCounter().GetValue()+m.GetGauge().GetValue()) // it is one of the two
				continue
			}
			for _, b := range h.GetBucket() {
				add("_bucket", fmt.Sprintf(`,le="%g"`, b.GetUpperBound()), float64(b.GetCumulativeCount()))
			}
			add("_bucket", `,le="+Inf"`, float64(h.GetSampleCount()))
			add("_count", "", float64(h.GetSampleCount()))
		}
	}
}

// quiet returns the series of a program that is scraped every 15 seconds. It makes its first call after a minute, and has refused none.
func quiet(t *testing.T) series {
	metrics, registry, all := New(), prometheus.NewRegistry(), series{}
	registry.MustRegister(metrics)
	l := ratelimit.New(memstore.New(), ratelimit.WithObserver(metrics.Observe))
	metrics.Watch(l)
	rules := wrap.NewRules("p.T.M", ratelimit.Rule{Name: "login", Limit: 100, Per: time.Hour})
	limits := rules.On(l)
	for i := range 10 {
		if i > 4 {
			if err := wrap.Take(t.Context(), limits, rules, "ann"); err != nil {
				t.Fatal(err)
			}
		}
		all.scrape(t, registry, i)
	}
	return all
}

var selector = regexp.MustCompile(`ratelimit_\w+(\{[^}]*\})?`)

// queries returns queries by the times at which they must have a result: before the first call, and after some calls, where it must be a number.
func (d *dashboard) queries() map[string][]string {
	all := map[string][]string{}
	for _, p := range d.Panels {
		var found, numbers []string
		for _, target := range p.Targets {
			expr := strings.NewReplacer("$job", ".*", "$rule", ".*", "$__rate_interval", "1m").Replace(target.Expr)
			found, numbers = append(found, "("+expr+")"), append(numbers, "("+expr+") >= 0")
			if !strings.HasSuffix(expr, "or on() vector(0)") {
				all["1m"] = append(all["1m"], selector.FindAllString(expr, -1)...)
			}
		}
		all["1m"], all["2m15s"] = append(all["1m"], strings.Join(found, " or ")), append(all["2m15s"], strings.Join(numbers, " or "))
	}
	return all
}

// empty returns what promtool says of the queries of a dashboard that have no result, or "".
func empty(t *testing.T, d *dashboard, of series) string {
	t.Helper()
	type object = map[string]any
	var input, queries []object
	for name, values := range of {
		input = append(input, object{"series": name, "values": strings.Join(values, " ")})
	}
	for at, exprs := range d.queries() {
		for _, expr := range exprs {
			queries = append(queries, object{
				"eval_time": at, "expr": "count(" + expr + ") > bool 0", "exp_samples": []object{{"labels": "{}", "value": 1}},
			})
		}
	}
	text, err := yaml.Marshal(object{"tests": []object{{"interval": "15s", "input_series": input, "promql_expr_test": queries}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dashboard_test.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("promtool", "test", "rules", file).CombinedOutput()
	if err == nil {
		return ""
	}
	return fmt.Sprintf("%v: %s", err, out)
}

// No panel is empty before the first refusal, and no metric of a panel waits for it.
func TestDashboardIsNeverEmpty(t *testing.T) {
	var d dashboard
	decode(t, "grafana.json", &d, json.Unmarshal)
	of := quiet(t)
	if said := empty(t, &d, of); said != "" {
		t.Error(said)
	}
	panel := &d.Panels[0]
	panel.Targets = append(panel.Targets[:0:0], panel.Targets...)
	for _, expr := range []string{`sum(ratelimit_decisions_total{source="block"})`, "histogram_quantile(0.5, sum by (le) (rate(ratelimit_wait_seconds_bucket[1m])))"} {
		panel.Targets[0].Expr = expr
		if said := empty(t, &d, of); !strings.Contains(strings.ReplaceAll(said, `\"`, `"`), expr) {
			t.Errorf("a panel of %s: promtool says %s", expr, said)
		}
	}
}
