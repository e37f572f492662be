// Package marked replaces the part of a file that a command writes, and leaves the rest of the file as it is. It does not know what the part
// contains.
package marked

import (
	"fmt"
	"os"
	"strings"
)

// Part is the part of a file between two lines.
type Part struct {
	Begin, End string // without line ends
	Heading    string // if a file does not have these lines, the part is appended under this heading; "" makes that an error
}

// Replace replaces the text between the two lines in a file.
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
