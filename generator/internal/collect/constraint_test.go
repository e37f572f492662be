package collect

import (
	"go/build"
	"io"
	"slices"
	"strings"
	"testing"
)

// TestImpliedByName expects each word to be implied by the name of a file exactly if go/build requires it.
func TestImpliedByName(t *testing.T) {
	words := []string{"x", "", "linux", "windows", "unix", "amd64", "arm64", "test"}
	for _, a := range words {
		for _, b := range words {
			for _, c := range words {
				name := strings.Join([]string{"x", a, b, c}, "_") + ".go"
				checkImplied(t, name)
				checkImplied(t, strings.TrimPrefix(name, "x_"))
			}
		}
	}
	checkImplied(t, "linux.go")
}

func checkImplied(t *testing.T, name string) {
	t.Helper()
	implied := impliedByName(name)
	for _, system := range []string{"linux", "windows", "plan9"} {
		for _, arch := range []string{"amd64", "arm64", "riscv64"} {
			c := build.Context{GOOS: system, GOARCH: arch, Compiler: "gc", OpenFile: func(string) (io.ReadCloser, error) {
				return io.NopCloser(strings.NewReader("package p\n")), nil
			}}
			built, err := c.MatchFile("", name)
			if err != nil {
				t.Fatal(err)
			}
			meant := !slices.ContainsFunc(implied, func(word string) bool { return word != system && word != arch })
			if ignored := name[0] == '_'; !ignored && meant != built {
				t.Errorf("%s implies %q; on %s, %s it is built: %t", name, implied, system, arch, built)
			}
		}
	}
}
