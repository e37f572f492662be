package bypass_test

import (
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/ratelimit-go/ratelimit/generator/vet/bypass"
)

func TestValid(t *testing.T) {
	if err := analysis.Validate([]*analysis.Analyzer{bypass.Analyzer}); err != nil {
		t.Error(err)
	}
}

func TestPrograms(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), bypass.Analyzer, "./...")
}
