package generator_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator"
	"github.com/ratelimit-go/ratelimit/internal/fields"
	"github.com/ratelimit-go/ratelimit/internal/testmodule"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// TestRowsAreFields compares the table of arguments with the fields of Rule.
func TestRowsAreFields(t *testing.T) {
	typ := reflect.TypeFor[ratelimit.Rule]()
	var rows, named []string
	for _, a := range annotations.LookUp("rule").Args {
		if a.Field == "" {
			continue
		}
		rows = append(rows, a.Field)
		for i, w := range a.Words {
			var r ratelimit.Rule
			fields.Set(&r, annotations.Value{Argument: &a, Text: w.Text})
			field := reflect.ValueOf(r).FieldByName(a.Field)
			if field.Kind() == reflect.Bool {
				if field.Bool() != (i == 1) {
					t.Errorf("%s=%s gives the field the value %v", a.Name, w.Text, field)
				}
			} else if got := fmt.Sprint(field.Interface()); got != w.Text {
				t.Errorf("%s=%s gives the field the value %q", a.Name, w.Text, got)
			}
		}
	}
	follow := []string{"Amounts", "BlockMax", "Computed", "Pausable"} // from cost= and limit=, from block=, from limit=, and from pause=
	for i := range typ.NumField() {
		if f := typ.Field(i); f.IsExported() && !slices.Contains(follow, f.Name) {
			named = append(named, f.Name)
		}
	}
	slices.Sort(rows)
	slices.Sort(named)
	if !slices.Equal(rows, named) {
		t.Errorf("the table has %v, Rule has %v", rows, named)
	}
}

// samples has a value for each argument that differs from its default, with the other arguments that it needs.
var samples = map[string]string{
	"name":      "name=sample",
	"key":       `key="{a}"`,
	"distinct":  `distinct="{b}"`,
	"algorithm": "algorithm=fixed-window",
	"limit":     "",
	"per":       "",
	"cron":      "cron=@daily",
	"tz":        "cron=@daily tz=Asia/Tokyo",
	"every":     `every=1mo anchor="date('2026-01-31')"`,
	"anchor":    `anchor="date('2026-01-31')" every=1mo`,
	"burst":     "algorithm=token-bucket burst=3",
	"prepay":    "algorithm=token-bucket prepay",
	"warmup":    "algorithm=token-bucket warmup=2s",
	"slices":    "algorithm=sliding-counter slices=6",
	"cost":      "cost=2",
	"settle":    `settle="n"`,
	"pause":     `pause="retryAfter(err)"`,
	"hold":      "algorithm=concurrency hold=rows",
	"lease":     "lease=200ms",
	"when":      `when="len(a) > 1"`,
	"wait":      "wait=3s",
	"queue":     "algorithm=token-bucket wait=1h queue=4",
	"block":     "block=5s..1h",
	"mode":      "mode=shadow",
	"scope":     "scope=instance",
	"refund":    "refund=error",
	"on-error":  "on-error=allow",
	"hash":      "hash=false",
	"report":    "report=false",
	"message":   `message="Slow down."`,
}

// TestEveryArgumentHasAnEffect generates from each row of the table, and expects the argument in the generated code and in the list.
func TestEveryArgumentHasAnEffect(t *testing.T) {
	t.Parallel()
	root := newModule(t, "example.com/rows")
	add := func(name, rule string) {
		if !strings.Contains(rule, "cron=") && !strings.Contains(rule, "every=") {
			rule += " per=1m"
		}
		src := "package x\n\nimport (\n\t\"context\"\n\t\"io\"\n)\n\ntype X interface {\n\t//ratelimit:rule limit=7 " + rule +
			"\n\tM(ctx context.Context, a, b string) (n int, rows io.Closer, err error)\n}\n"
		testmodule.Write(t, filepath.Join(root, name, "x.go"), []byte(src))
	}
	for _, a := range annotations.LookUp("rule").Args {
		sample, ok := samples[a.Name]
		if !ok {
			t.Fatalf("no sample of %s", a.Name)
		}
		rest, _, _ := strings.Cut(" "+sample, " "+a.Name)
		add(a.Name, sample)
		add(a.Name+"_without", rest)
	}
	result, err := generator.Generate(t.Context(), generator.Config{Dir: root, Patterns: []string{"./..."}})
	if err != nil {
		t.Fatal(err)
	}
	sources, lists := map[string]string{}, map[string]string{}
	for _, f := range result.Files {
		sources[filepath.Base(filepath.Dir(f.Name))] = string(f.Source)
	}
	for _, r := range result.Rules {
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		lists[filepath.Base(filepath.Dir(r.File))] += string(text)
	}
	for _, a := range annotations.LookUp("rule").Args {
		t.Run(a.Name, func(t *testing.T) {
			source, listed := sources[a.Name], lists[a.Name]
			if a.Field != "" && !strings.Contains(source, a.Field+":") {
				t.Errorf("the field %s is not generated:\n%s", a.Field, source)
			}
			if samples[a.Name] == "" {
				return
			}
			without, other := sources[a.Name+"_without"], lists[a.Name+"_without"]
			if strings.ReplaceAll(source, a.Name+"_without", a.Name) == strings.ReplaceAll(without, a.Name+"_without", a.Name) {
				t.Errorf("the generated code is the same without %s", a.Name)
			}
			if a.Name != "message" && strings.ReplaceAll(other, a.Name+"_without", a.Name) == listed {
				t.Errorf("the list is the same without %s", a.Name)
			}
		})
	}
}
