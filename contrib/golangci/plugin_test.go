package golangci

import (
	"slices"
	"testing"

	"github.com/golangci/plugin-module-register/register"
)

func TestSettings(t *testing.T) {
	newPlugin, err := register.GetPlugin("ratelimit")
	if err != nil {
		t.Fatal(err)
	}
	both := []string{"ratelimitdirective", "ratelimitbypass"}
	for _, c := range []struct {
		settings any
		want     []string
	}{
		{nil, both},
		{map[string]any{}, both},
		{map[string]any{"bypass": true}, both},
		{map[string]any{"bypass": false}, both[:1]},
		{map[string]any{"bypas": false}, nil},
		{map[string]any{"bypass": "no"}, nil},
	} {
		p, err := newPlugin(c.settings)
		if (err != nil) != (c.want == nil) {
			t.Errorf("%v: %v", c.settings, err)
		}
		if err != nil {
			continue
		}
		analyzers, err := p.BuildAnalyzers()
		var got []string
		for _, a := range analyzers {
			got = append(got, a.Name)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, %v, expected %v", c.settings, got, err, c.want)
		}
	}
}
