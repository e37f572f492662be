package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/vet/bypass"
	"github.com/ratelimit-go/ratelimit/generator/vet/directive"
	"github.com/ratelimit-go/ratelimit/generator/vet/forgotten"
)

const vetUsage = `usage: ratelimit vet [build flags] [-bypass=false] [-json] [-fix [-diff]] [packages]

Reports directives that are broken or suspicious, generated files that are not
up to date, wrappers that no program among the packages calls, and programs that
use a limited type without its wrapper. -bypass=false reports the first two only.
A line that ends with //ratelimit:bare and a reason is not reported either.

It runs go vet with another tool: flags, packages and exit status are those of
go vet. -fix applies the fixes that need no decision; -diff shows them.

examples:
  ratelimit vet ./...
  go vet -vettool=$(go tool -n ratelimit) ./...    without wrappers that no program calls
`

// vets runs the command lines of ratelimit vet and of go vet's calls of its tool. For all others, ok is false.
func vets(args []string, stdout, stderr io.Writer) (status int, ok bool) {
	switch {
	case isTool(args):
		flag.BoolFunc("bypass", "report programs that use a limited type without its wrapper (default true)", setBypass)
		unitchecker.Main(directive.Analyzer, bypass.Analyzer) // does not return
	case len(args) == 0 || args[0] != "vet":
		return 0, false
	case len(args) == 2 && (args[1] == "-h" || args[1] == "-help" || args[1] == "--help"):
		fmt.Fprint(stdout, vetUsage)
		return done, true
	}
	return goVet(args[1:], stdout, stderr), true
}

// setBypass sets the flag -bypass. Package unitchecker has a flag for each analyzer. If it is false, the analyzer does not run; if it is
// true, only that analyzer runs, so setBypass passes on false only.
func setBypass(value string) error {
	on, err := strconv.ParseBool(value)
	if err != nil || on {
		return err
	}
	return flag.Set(bypass.Analyzer.Name, "false")
}

// isTool reports whether the go command calls this program as its vet tool.
func isTool(args []string) bool {
	return len(args) > 0 && (args[0] == "-V=full" || args[0] == "-flags" || strings.HasSuffix(args[len(args)-1], ".cfg"))
}

// goVet runs go vet with this program as its tool, and then the check of whole programs. It prints the findings of both in the order of
// their positions.
func goVet(args []string, stdout, stderr io.Writer) (status int) {
	status, said := vetPackages(args, stdout)
	if wrong, usage, _ := strings.Cut(said, "\n"); strings.HasPrefix(usage, "usage: go vet") { // which describes other commands
		fmt.Fprintf(stderr, "ratelimit vet: %s; see ratelimit vet -h\n", wrong)
		return status
	}
	found := findings(said)
	if list, asJSON, wanted := listArgs(args); wanted {
		wrappers, err := forgotten.Find(list)
		switch {
		case err != nil && status == done: // otherwise go vet has said what is wrong
			found, status = append(found, annotations.Message{Text: err.Error()}), failed
		case asJSON:
			printJSON(stdout, wrappers)
		case len(wrappers) > 0:
			found, status = append(found, messages(wrappers)...), failed
		}
	}
	slices.SortStableFunc(found, func(a, b annotations.Message) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	for _, m := range found {
		fmt.Fprintln(stderr, m)
	}
	return status
}

// vetPackages runs go vet, and returns its exit status and what it says on standard error.
func vetPackages(args []string, stdout io.Writer) (status int, said string) {
	self, err := os.Executable()
	if err != nil {
		return failed, err.Error()
	}
	var stderr bytes.Buffer
	cmd := exec.Command("go", append([]string{"vet", "-vettool=" + self}, args...)...)
	cmd.Stdout, cmd.Stderr = stdout, &stderr
	signal.Notify(make(chan os.Signal, 1), os.Interrupt) // it ends go vet; then the findings until then are printed
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		return failed, err.Error()
	}
	return cmd.ProcessState.ExitCode(), stderr.String()
}

// position matches the beginning of a finding of go vet.
var position = regexp.MustCompile(`^(?:vet: )?(.*\.go):([0-9]+):([0-9]+): `)

// findings returns what go vet says, without the lines that name packages. A line without a position belongs to the finding above.
func findings(said string) (found []annotations.Message) {
	for line := range strings.Lines(said) {
		line = strings.TrimSuffix(line, "\n")
		at := position.FindStringSubmatch(line)
		switch {
		case strings.HasPrefix(line, "# "):
		case at != nil:
			m := annotations.Message{File: at[1], Text: line[len(at[0]):]}
			m.Line, _ = strconv.Atoi(at[2])
			m.Column, _ = strconv.Atoi(at[3])
			found = append(found, m)
		case len(found) > 0:
			found[len(found)-1].Text += "\n" + line
		default:
			found = append(found, annotations.Message{Text: line})
		}
	}
	return found
}

// listArgs returns the flags and packages for go list, whether the output is JSON, and whether the check of whole programs is wanted.
func listArgs(args []string) (list []string, asJSON, wanted bool) {
	wanted = true
	for _, arg := range args {
		name, value, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		on, err := strconv.ParseBool(value)
		on = on || err != nil // a flag without a value
		switch {
		case !strings.HasPrefix(arg, "-"):
			list = append(list, arg)
		case name == "json":
			asJSON = on
		case name == "bypass" || name == bypass.Analyzer.Name:
			wanted = on
		case name != "c" && name != "fix" && name != "diff" && name != directive.Analyzer.Name:
			list = append(list, arg)
		}
	}
	return list, asJSON, wanted
}

// messages returns findings with file names as in those of go vet.
func messages(wrappers []forgotten.Wrapper) (found []annotations.Message) {
	dir, _ := os.Getwd() // without it, file names are absolute
	for _, w := range wrappers {
		at := annotations.Span{Line: w.At.Line, Column: w.At.Column}
		found = append(found, annotations.Message{File: annotations.Relative(dir, w.At.Filename), Span: at, Text: w.String()})
	}
	return found
}

// printJSON prints findings as go vet does.
func printJSON(stdout io.Writer, wrappers []forgotten.Wrapper) {
	type diagnostic struct {
		Posn    string `json:"posn"`
		Message string `json:"message"`
	}
	e := json.NewEncoder(stdout)
	e.SetIndent("", "\t")
	for _, w := range wrappers {
		_ = e.Encode(map[string]map[string][]diagnostic{w.Package: {"ratelimitforgotten": {{w.At.String(), w.String()}}}})
	}
}
