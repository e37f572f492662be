// Package origin says what was measured, and where.
package origin

import (
	"fmt"
	"os/exec"
	"runtime"
	"strings"
)

// At names the commit, the processors and the version of Go, such as "Measured at commit af76fc18 on 2 cores, go1.26.8".
func At() string {
	return fmt.Sprintf("Measured at %s on %d cores, %s", commit(), runtime.NumCPU(), runtime.Version())
}

// commit names the commit of the working tree. It looks only at code, because benchmarks write pages.
func commit() string {
	head, err := exec.Command("git", "rev-parse", "--short", "HEAD").Output()
	if err != nil {
		return "an unknown commit"
	}
	name := "commit " + strings.TrimSpace(string(head))
	if exec.Command("git", "diff", "--quiet", "HEAD", "--", ":/*.go", ":/*.lua", ":/*go.mod").Run() != nil {
		name += " with changes"
	}
	return name
}
