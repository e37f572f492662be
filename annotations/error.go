package annotations

import (
	"cmp"
	"errors"
	"fmt"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
)

// Error is something wrong with a directive, at the position of the word that is wrong.
type Error struct {
	Pos token.Pos
	Msg string
	Fix *Fix // nil if nobody but the author can mend it
}

// Fix is the text that should stand from Pos to End.
type Fix struct {
	Pos, End token.Pos
	Text     string
}

// Errors are all that was found wrong, in the order found.
type Errors []Error

// Add adds an error with a formatted message.
func (e *Errors) Add(pos token.Pos, format string, args ...any) {
	*e = append(*e, Error{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// Err returns nil if there are no errors, and else one error with the lines of [Errors.Lines] as its text.
func (e Errors) Err(fset *token.FileSet, dir string) error {
	if len(e) == 0 {
		return nil
	}
	return errors.New(strings.Join(e.Lines(fset, dir), "\n"))
}

// Lines returns the errors as file:line:col: message, sorted and each once. Files are named relative to dir where that is
// shorter. An error without a position is its message alone and comes first.
func (e Errors) Lines(fset *token.FileSet, dir string) []string {
	type line struct {
		token.Position
		msg string
	}
	lines := make([]line, len(e))
	for i, err := range e {
		lines[i] = line{fset.PositionFor(err.Pos, false), err.Msg}
		lines[i].Filename = Relative(dir, lines[i].Filename)
	}
	slices.SortFunc(lines, func(a, b line) int {
		return cmp.Or(
			cmp.Compare(a.Filename, b.Filename),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.msg, b.msg))
	})
	var texts []string
	for _, l := range lines {
		if l.IsValid() {
			l.msg = l.Position.String() + ": " + l.msg
		}
		texts = append(texts, l.msg)
	}
	return slices.Compact(texts)
}

// Line names the line of a position as it is seen from another one.
func Line(fset *token.FileSet, of, from token.Pos) string {
	at, here := fset.PositionFor(of, false), fset.PositionFor(from, false)
	if at.Filename == here.Filename {
		return fmt.Sprintf("line %d", at.Line)
	}
	return fmt.Sprintf("%s:%d", filepath.Base(at.Filename), at.Line)
}

// Relative returns the name of a file as seen from dir if that is shorter.
func Relative(dir, name string) string {
	if rel, err := filepath.Rel(dir, name); err == nil && len(rel) < len(name) {
		return rel
	}
	return name
}

// unknown reports that word is no valid one, and which it should be.
func (p *parser) unknown(what string, word Text, valid []string) {
	near := Nearest(word.Value, valid)
	if near == "" {
		p.add(word.Pos, "unknown %s %q; expected %s", what, word.Value, list(valid, "or"))
		return
	}
	p.add(word.Pos, "unknown %s %q; did you mean %s?", what, word.Value, near)
	p.fix(word.Pos, word.At(len(word.Value)), near)
}

// list returns "a, b or c"; there are at least two words.
func list(words []string, last string) string {
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}
