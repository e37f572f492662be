package vet_test

import (
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"github.com/ratelimit-go/ratelimit/generator/vet"
)

func TestValid(t *testing.T) {
	if err := analysis.Validate([]*analysis.Analyzer{vet.Analyzer}); err != nil {
		t.Error(err)
	}
}

func TestLostLimits(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), vet.Analyzer,
		"sms", "provider", "app", "store", "repo", "held", "decorators", "carriers")
}

func TestDirectives(t *testing.T) {
	analysistest.RunWithSuggestedFixes(t, analysistest.TestData(), vet.Analyzer, "directives")
}

// TestMeaning finds what the generator refuses, though it can be read.
func TestMeaning(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), vet.Analyzer, "meaning")
}
