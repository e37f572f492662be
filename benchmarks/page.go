package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// replace replaces a part of a file, which is between two lines.
func replace(file, name, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin, end := fmt.Sprintf("<!-- begin %s -->\n", name), fmt.Sprintf("<!-- end %s -->\n", name)
	head, rest, begins := strings.Cut(string(old), begin)
	_, tail, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s: expected the lines %q and %q", file, begin, end)
	}
	return os.WriteFile(file, []byte(head+begin+"\n"+text+"\n"+end+tail), 0o644)
}

// origin says what was measured, and where.
func origin(redis string) string {
	return fmt.Sprintf("Measured at %s on %d cores, %s, Redis %s.\n", commit(), runtime.NumCPU(), runtime.Version(), redis)
}

// commit names the commit of the working tree. It looks only at code, because this program writes a page.
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
