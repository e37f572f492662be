// Package golangci is a module plugin for golangci-lint with the analyzers of ratelimit: directive, which finds broken
// directives, and bypass, which finds programs that use a limited type without its wrapper. Importing the package registers the
// plugin under the name ratelimit. README.md says how to build golangci-lint with it.
package golangci

import (
	"github.com/golangci/plugin-module-register/register"
	"golang.org/x/tools/go/analysis"

	"github.com/ratelimit-go/ratelimit/generator/vet/bypass"
	"github.com/ratelimit-go/ratelimit/generator/vet/directive"
)

func init() { register.Plugin("ratelimit", New) }

// Settings are the settings of the plugin in .golangci.yml.
type Settings struct {
	Bypass *bool `json:"bypass"` // whether to report programs that use a limited type without its wrapper; true if absent
}

// New returns the plugin with its settings. An unknown setting is an error.
func New(settings any) (register.LinterPlugin, error) {
	s, err := register.DecodeSettings[Settings](settings)
	if err != nil {
		return nil, err
	}
	p := plugin{directive.Analyzer}
	if s.Bypass == nil || *s.Bypass {
		p = append(p, bypass.Analyzer)
	}
	return p, nil
}

type plugin []*analysis.Analyzer

func (p plugin) BuildAnalyzers() ([]*analysis.Analyzer, error) { return p, nil }

func (plugin) GetLoadMode() string { return register.LoadModeTypesInfo }
