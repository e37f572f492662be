package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"golang.org/x/tools/go/analysis/unitchecker"

	ratelimitvet "github.com/ratelimit-go/ratelimit/generator/vet"
)

const vetUsage = `usage: ratelimit vet [build flags] [-json] [-fix [-diff]] [packages]

Reports directives that are broken, and places where the limit of a wrapped
interface is lost. It is go vet with another tool: flags, packages and exit
status are those of go vet. -fix repairs what can be repaired, and -diff shows
what it would do.

examples:
  ratelimit vet ./...
  go vet -vettool=$(which ratelimit) ./...    the same
`

// vets answers the command lines that have to do with go vet; ok is false for all others.
func vets(args []string, stdout, stderr io.Writer) (status int, ok bool) {
	switch {
	case isTool(args):
		unitchecker.Main(ratelimitvet.Analyzer) // which exits
	case len(args) == 0 || args[0] != "vet":
		return 0, false
	case len(args) == 2 && (args[1] == "-h" || args[1] == "-help" || args[1] == "--help"):
		fmt.Fprint(stdout, vetUsage)
		return done, true
	}
	return goVet(args[1:], stdout, stderr), true
}

// isTool reports whether the arguments are those with which the go command calls its vet tool.
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
	cmd.Stdout, cmd.Stderr = stdout, stderr
	err = cmd.Run()
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
