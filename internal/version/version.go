// Package version returns the version of this module that a command is built from.
package version

import (
	"fmt"
	"runtime/debug"
)

const module = "github.com/ratelimit-go/ratelimit"

// Of returns a line such as "ratelimit v1.2.3 go1.26.8" for a command of this module. It uses the build information of the running
// program.
func Of(command string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return command + " (unknown version)"
	}
	return fmt.Sprintf("%s %s %s", command, of(info), info.GoVersion)
}

// of returns the version of this module in a program, whose main module may be another one.
func of(info *debug.BuildInfo) string {
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return info.Main.Version
}
