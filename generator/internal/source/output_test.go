package source

import "testing"

func TestOutputNames(t *testing.T) {
	for name, output := range map[string]string{
		"a.go": "a_ratelimit.go", "a_test.go": "a_ratelimit_test.go", "ratelimit.go": "ratelimit_ratelimit.go",
	} {
		if got := OutputOf(name); got != output {
			t.Errorf("OutputOf(%s) = %s", name, got)
		}
		if got, ok := SourceOf(output); !ok || got != name {
			t.Errorf("SourceOf(%s) = %s, %v", output, got, ok)
		}
	}
	if _, ok := SourceOf("a.go"); ok {
		t.Error("a.go is no output")
	}
}
