package main

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"
)

// forgetful is a program that forgets the wrapper.
const forgetful = `package main

import "example.com/x"

type plain struct{}

func (plain) M(a string) error { return nil }

func main() { use(plain{}) }

func use(v x.X) { v.M("1") }
`

// shop is a package that wraps its argument, but not its spare.
const shop = `package shop

import (
	"example.com/x"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type Config struct{ X, Spare x.X }

func New(v x.X, l *ratelimit.Limiter) x.X { return x.NewLimitedX(v, l) }

func Open(c Config, l *ratelimit.Limiter) []x.X { return []x.X{New(c.X, l), c.Spare} }
`

// wiring is a program that relies on shop for the wrapping, and forgets the spare.
const wiring = `package main

import (
	"example.com/x/shop"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

type plain struct{}

func (plain) M(a string) error { return nil }

func main() {
	var l *ratelimit.Limiter
	shop.New(plain{}, l)
	shop.Open(shop.Config{X: plain{}}, l)
	var c shop.Config
	c.X, c.Spare = nil, plain{}
	shop.Open(c, l)
}
`

// runIn runs a program in dir.
func runIn(t *testing.T, dir, name string, args ...string) (status int, output string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// build returns the path of the command as users build it, by the tool line in their go.mod. The go command keeps it in its cache.
func build(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "tool", "-n", "ratelimit")
	cmd.Dir = module(t)
	path, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(path))
}

// generated creates a module with a wrapper and the given main package.
func generated(t *testing.T, program, main string) (dir string) {
	t.Helper()
	dir = module(t, "x.go", source, "app/main.go", main)
	if status, out := runIn(t, dir, program); status != 0 {
		t.Fatalf("generating: status %d\n%s", status, out)
	}
	return dir
}

func TestVet(t *testing.T) {
	program := build(t)
	dir := generated(t, program, forgetful)
	const bare = "app/main.go:9:19: plain is used as x.X without its rate limits; wrap it with x.NewLimitedX\n"
	const unused = "x.go:3:6: no program calls NewLimitedX, so X is never limited; " +
		"call it where the program creates a value of X, or end this line with //ratelimit:bare and a reason\n"
	for _, c := range []struct {
		want    string
		command []string
	}{
		{bare + unused, []string{program, "vet", "./..."}},
		{bare + unused, []string{program, "vet", "-bypass", "-tags", "some", "./..."}},
		{bare + unused, []string{program, "vet", "./app", "."}},
		{bare, []string{"go", "vet", "-vettool=" + program, "./..."}},
		{bare, []string{"go", "vet", "-vettool=" + program, "-ratelimitbypass", "./..."}},
	} {
		status, out := runIn(t, dir, c.command[0], c.command[1:]...)
		if status != 1 || !strings.HasSuffix(out, c.want) {
			t.Errorf("%v: status %d, expected 1 and %q:\n%s", c.command, status, c.want, out)
		}
	}
	for _, command := range [][]string{
		{program, "vet", "-bypass=false", "./..."},
		{"go", "vet", "-vettool=" + program, "-bypass=false", "./..."},
		{program, "vet"},
	} {
		if status, out := runIn(t, dir, command[0], command[1:]...); status != 0 || out != "" {
			t.Errorf("%v: status %d, expected 0 and no finding:\n%s", command, status, out)
		}
	}
	status, out := runIn(t, dir, program, "vet", "-json", "./...")
	if status != 0 || !strings.Contains(out, `"message": "plain is used as x.X`) || !strings.Contains(out, `"message": "no program calls NewLimitedX`) {
		t.Errorf("vet -json: status %d\n%s", status, out)
	}
}

// TestVetTool runs the command by the tool line in go.mod, and then as the tool of go vet.
func TestVetTool(t *testing.T) {
	dir := module(t, "x.go", source, "app/main.go", forgetful)
	goCommand(t, dir, "tool", "ratelimit")
	status, out := runIn(t, dir, "go", "vet", "-vettool="+build(t), "./...")
	if status != 1 || !strings.Contains(out, "plain is used as x.X without its rate limits") {
		t.Errorf("status %d\n%s", status, out)
	}
}

func TestVetWithoutFinding(t *testing.T) {
	program := build(t)
	for _, main := range []string{
		strings.Replace(forgetful, "use(plain{})", "use(x.NewLimitedX(plain{}, nil))", 1),
		strings.Replace(forgetful, "use(plain{}) }",
			"use(x.NewLimitedX(plain{}, nil)); use(plain{}) } //ratelimit:bare nobody else calls it", 1),
	} {
		if status, out := runIn(t, generated(t, program, main), program, "vet", "./..."); status != 0 || out != "" {
			t.Errorf("status %d, expected 0 and no finding in\n%s\n%s", status, main, out)
		}
	}
	dir := generated(t, program, wiring)
	write(t, dir, "shop/shop.go", shop)
	if status, out := runIn(t, dir, program, "vet", "./..."); status != 1 || strings.Count(out, "plain is used") != 1 ||
		!strings.Contains(out, "main.go:17:22: plain is used") {
		t.Errorf("what another package wraps: status %d\n%s", status, out)
	}
	dir = generated(t, program, strings.Replace(forgetful, "use(plain{}) }", "use(plain{}) } //ratelimit:bare", 1))
	status, out := runIn(t, dir, program, "vet", "./...")
	if status != 1 || !strings.Contains(out, "bare needs a reason") || !strings.Contains(out, "plain is used") {
		t.Errorf("without a reason: status %d\n%s", status, out)
	}
}

func TestVetStale(t *testing.T) {
	program := build(t)
	dir := generated(t, program, "package main\n\nfunc main() {}\n")
	output := read(t, dir, "x_ratelimit.go")
	for _, c := range []struct{ name, text, want string }{
		{"x.go", strings.Replace(source, "limit=1", "limit=2", 1), "x.go:3:6: x_ratelimit.go is not up to date; run go tool ratelimit in this directory\n"},
		{"x_ratelimit.go", strings.ReplaceAll(output, "\n", "\r\n"), ""},
		{"x_ratelimit.go", "// Copyright Example Ltd.\n\n" + output, ""},
		{"x_ratelimit.go", output + "// more\n", "x_ratelimit.go is not up to date"},
		{"x_ratelimit.go", "package x\n", "x_ratelimit.go is not up to date"},
		{"x.go", "package x\n\ntype X interface{ M(a string) error }\n",
			"x_ratelimit.go:4:1: this file was generated from directives that are gone; run go tool ratelimit in this directory\n"},
	} {
		write(t, dir, "x.go", source)
		write(t, dir, "x_ratelimit.go", output)
		write(t, dir, c.name, c.text)
		status, out := runIn(t, dir, program, "vet", ".")
		if (status == 0) != (c.want == "") || !strings.Contains(out, c.want) {
			t.Errorf("%s: status %d, expected %q:\n%s", c.name, status, c.want, out)
		}
	}
}

// TestVetCgo checks a package with a cgo file, which vet sees only after its translation.
func TestVetCgo(t *testing.T) {
	t.Setenv("CGO_ENABLED", "1")
	program := build(t)
	dir := module(t, "x.go", strings.Replace(source, "package x\n", "package x\n\n// int one = 1;\nimport \"C\"\n\nvar One = C.one\n", 1))
	if status, out := runIn(t, dir, program); status != 0 {
		t.Fatalf("generating: status %d\n%s", status, out)
	}
	if status, out := runIn(t, dir, program, "vet", "."); status != 0 || out != "" {
		t.Errorf("status %d\n%s", status, out)
	}
}

func TestVetFix(t *testing.T) {
	program := build(t)
	dir := module(t, "x.go", strings.NewReplacer("//ratelimit", "// ratelimit", "limit=", "limt=").Replace(source))
	for range 2 { // the misspelt word is found once the directive is one
		if status, out := runIn(t, dir, program, "vet", "-fix", "./..."); status != 0 {
			t.Errorf("vet -fix: status %d\n%s", status, out)
		}
	}
	if got := read(t, dir, "x.go"); got != source {
		t.Errorf("vet -fix made\n%s", got)
	}
}

func TestVetUsage(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if status, ok := vets([]string{"vet", "-h"}, &stdout, &stderr); status != done || !ok || stdout.String() != vetUsage {
		t.Errorf("vet -h: %d, %t, %q", status, ok, stdout.String())
	}
	for _, args := range [][]string{nil, {"./..."}, {"-check", "./vet"}, {"./vet"}, {"-version"}} {
		if _, ok := vets(args, &stdout, &stderr); ok {
			t.Errorf("%v was taken for a call of vet", args)
		}
	}
}

func TestVetWrongFlag(t *testing.T) {
	program, dir := build(t), module(t)
	for flag, wrong := range map[string]string{
		"-nope":         "flag provided but not defined: -nope",
		"-bypass=maybe": `invalid boolean value "maybe" for -bypass: parse error`,
	} {
		status, out := runIn(t, dir, program, "vet", flag)
		if want := "ratelimit vet: " + wrong + "; see ratelimit vet -h\n"; status != misused || out != want {
			t.Errorf("vet %s: status %d, printed %q, expected %q", flag, status, out, want)
		}
	}
}
