package main

import "testing"

// TestVetOnPlatforms generates once, and expects that vet finds nothing on any platform: methods of other platforms decide on names of fields, on
// functions for values that are handed out, and whether there is a wrapper at all.
func TestVetOnPlatforms(t *testing.T) {
	program, dir := build(t), module(t,
		"names/x.go", "package names\n\n//ratelimit:guard\ntype S struct{ guard *SGuard }\n\n//ratelimit:rule limit=1 per=1m\nfunc (s *S) Do() error { return s.guard.Do() }\n",
		"names/x_windows.go", "package names\n\n//ratelimit:rule limit=1 per=1m name=l\nfunc (s *S) limits() error { return s.guard.limits() }\n\nvar _ = (*S).limits\n",
		"handed/x.go", "package handed\n\ntype S struct{}\n\n//ratelimit:rule limit=1 per=1m\nfunc (s *S) Do() error { return nil }\n",
		"handed/x_darwin.go", "package handed\n\nfunc (s *S) With() *S { return s }\n",
		"only/x.go", "package only\n\ntype S struct{}\n",
		"only/x_linux.go", "package only\n\n//ratelimit:rule limit=1 per=1m\nfunc (s *S) Do() error { return nil }\n")
	if status, out := runIn(t, dir, program, "./..."); status != 0 {
		t.Fatalf("generating: status %d\n%s", status, out)
	}
	for _, system := range []string{"linux", "windows", "darwin"} {
		t.Setenv("GOOS", system)
		if status, out := runIn(t, dir, program, "vet", "./..."); status != 0 || out != "" {
			t.Errorf("%s: status %d\n%s", system, status, out)
		}
	}
}
