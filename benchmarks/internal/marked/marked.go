// Package marked keeps the part of a file that a command writes apart from what stands around it. What is measured, and how it
// is printed, is not known here.
package marked

import (
	"fmt"
	"os"
	"strings"
)

// Part is what stands between two lines.
type Part struct {
	Begin, End string // without line ends
	Heading    string // under which the part is appended to a file without these lines; "" if that is an error
}

// Replace puts text between the lines in a file.
func (p Part) Replace(file, text string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	begin, end := p.Begin+"\n", p.End+"\n"
	before, rest, found := strings.Cut(string(old), begin)
	_, after, ended := strings.Cut(rest, end)
	switch {
	case !found && p.Heading != "":
		before = strings.TrimRight(before, "\n") + "\n\n" + p.Heading + "\n\n"
	case !found || !ended:
		return fmt.Errorf("%s: expected the lines %q and %q", file, p.Begin, p.End)
	}
	return os.WriteFile(file, []byte(before+begin+"\n"+text+"\n"+end+after), 0o644)
}
