package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis/unitchecker"

	"github.com/ratelimit-go/ratelimit/generator/vet/bypass"
	"github.com/ratelimit-go/ratelimit/generator/vet/directive"
)

const vetUsage = `usage: ratelimit vet [build flags] [-bypass=false] [-json] [-fix [-diff]] [packages]

Reports directives that are broken or suspicious, generated files that are not
up to date, and programs that use a limited type without its wrapper.
-bypass=false does not report these programs. A line that ends with
//ratelimit:bare and a reason is not reported either.

It runs go vet with another tool: flags, packages and exit status are those of
go vet. -fix applies the fixes that need no decision; -diff shows them.

examples:
  ratelimit vet ./...
  go vet -vettool=$(go tool -n ratelimit) ./...    the same
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

// goVet runs go vet with this program as its tool.
func goVet(args []string, stdout, stderr io.Writer) (status int) {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(stderr, err)
		return failed
	}
	cmd := exec.Command("go", append([]string{"vet", "-vettool=" + self}, args...)...)
	cmd.Stdout = stdout
	said, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		copyWithoutUsage(stderr, said)
		err = cmd.Wait()
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(stderr, err)
		return failed
	}
	return done
}

// copyWithoutUsage copies what go vet says, line by line as it comes. Below an error in the command line, go vet prints its own usage, which is
// about other commands than this one.
func copyWithoutUsage(to io.Writer, from io.Reader) {
	const usage = "usage: go vet"
	said := bufio.NewReader(from)
	first, _ := said.ReadString('\n')
	if next, _ := said.Peek(len(usage)); string(next) == usage {
		fmt.Fprintf(to, "ratelimit vet: %s; see ratelimit vet -h\n", strings.TrimSuffix(first, "\n"))
		to = io.Discard
	} else {
		io.WriteString(to, first)
	}
	io.Copy(to, said)
}
