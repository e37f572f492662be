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

// Diagnostic is a message about a word of a source file.
type Diagnostic struct {
	Pos, End token.Pos // of the word; End is zero if it is not known, and both are zero if the message is about no file
	Severity Severity
	Code     string // the kind of problem, for tools; often the stage that found it
	Msg      string
	Fix      *Fix // nil if only the author can correct it
	Unknown  Unknown
}

// Unknown is the name in an error about a name that means nothing. Otherwise it is zero.
type Unknown struct {
	Name       string
	Suggestion string // the end of a message with a name that is close to it, or ""
}

// Severity says how serious a diagnostic is. The zero value is an error.
type Severity int

const (
	SeverityError   Severity = iota // nothing is generated
	SeverityWarning                 // valid, but probably not what was meant
	SeverityNote                    // nothing is wrong
)

func (s Severity) String() string { return [...]string{"error", "warning", "note"}[s] }

// MarshalText writes the severity as String does.
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Fix replaces the source from Pos to End by Text.
type Fix struct {
	Pos, End token.Pos
	Text     string
}

// Diagnostics are in the order in which they were found.
type Diagnostics []Diagnostic

// Add adds an error with a formatted message.
func (ds *Diagnostics) Add(pos token.Pos, format string, args ...any) {
	*ds = append(*ds, Diagnostic{Pos: pos, Msg: fmt.Sprintf(format, args...)})
}

// Warn adds a warning with a formatted message.
func (ds *Diagnostics) Warn(pos token.Pos, format string, args ...any) {
	*ds = append(*ds, Diagnostic{Pos: pos, Severity: SeverityWarning, Msg: fmt.Sprintf(format, args...)})
}

// Note adds a note with a formatted message.
func (ds *Diagnostics) Note(pos token.Pos, format string, args ...any) {
	*ds = append(*ds, Diagnostic{Pos: pos, Severity: SeverityNote, Msg: fmt.Sprintf(format, args...)})
}

// HasErrors reports whether any of the diagnostics is an error.
func (ds Diagnostics) HasErrors() bool {
	return slices.ContainsFunc(ds, func(d Diagnostic) bool { return d.Severity == SeverityError })
}

// Coded sets the code of the diagnostics that have none, and returns ds.
func (ds Diagnostics) Coded(code string) Diagnostics {
	for i := range ds {
		ds[i].Code = cmp.Or(ds[i].Code, code)
	}
	return ds
}

// Message is a diagnostic with its place in a file.
type Message struct {
	File string `json:"file,omitempty"`
	Span
	Severity Severity `json:"severity"`
	Code     string   `json:"code,omitempty"`
	Text     string   `json:"message"`
	Fix      *Edit    `json:"fix,omitempty"`
}

// Span is a part of a file. Lines and columns count from 1, columns in bytes; the end is zero if it is not known.
type Span struct {
	Line      int `json:"line,omitempty"`
	Column    int `json:"column,omitempty"`
	EndLine   int `json:"endLine,omitempty"`
	EndColumn int `json:"endColumn,omitempty"`
}

// Edit replaces a part of the file by Text.
type Edit struct {
	Span
	Text string `json:"text"`
}

// String writes a message as file:line:col: text. A warning or a note says so before its text.
func (m Message) String() string {
	text := m.Text
	if m.Severity != SeverityError {
		text = m.Severity.String() + ": " + text
	}
	switch {
	case m.File == "":
		return text
	case m.Line == 0:
		return m.File + ": " + text
	}
	return fmt.Sprintf("%s:%d:%d: %s", m.File, m.Line, m.Column, text)
}

// Sorted returns the diagnostics in the order of their positions, without duplicates. Diagnostics about no file come first.
func (ds Diagnostics) Sorted(fset *token.FileSet) Diagnostics {
	sorted := slices.SortedStableFunc(slices.Values(ds), func(a, b Diagnostic) int {
		at, other := fset.PositionFor(a.Pos, false), fset.PositionFor(b.Pos, false)
		return cmp.Or(
			cmp.Compare(at.Filename, other.Filename),
			cmp.Compare(at.Line, other.Line),
			cmp.Compare(at.Column, other.Column),
			cmp.Compare(a.Severity, b.Severity),
			cmp.Compare(a.Msg, b.Msg))
	})
	return slices.CompactFunc(sorted, func(a, b Diagnostic) bool {
		return a.Severity == b.Severity && a.Msg == b.Msg && fset.PositionFor(a.Pos, false) == fset.PositionFor(b.Pos, false)
	})
}

// Messages returns the diagnostics in the order of [Diagnostics.Sorted]. File names are relative to dir where that is shorter.
func (ds Diagnostics) Messages(fset *token.FileSet, dir string) []Message {
	span := func(pos, end token.Pos) Span {
		from, to := fset.PositionFor(pos, false), fset.PositionFor(end, false)
		return Span{from.Line, from.Column, to.Line, to.Column}
	}
	var all []Message
	for _, d := range ds.Sorted(fset) {
		m := Message{Span: span(d.Pos, d.End), Severity: d.Severity, Code: d.Code, Text: d.Msg}
		if d.Pos.IsValid() {
			m.File = Relative(dir, fset.PositionFor(d.Pos, false).Filename)
		}
		if d.Fix != nil {
			m.Fix = &Edit{span(d.Fix.Pos, d.Fix.End), d.Fix.Text}
		}
		all = append(all, m)
	}
	return all
}

// Join writes one message a line. After 100 messages it writes only the number of the others.
func Join(messages []Message) string {
	const most = 100
	lines := each(messages, Message.String)
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("and %d more", len(lines)-most))
	}
	return strings.Join(lines, "\n")
}

// OneLine returns one error with the messages of all diagnostics, without positions, on one line. It returns nil if there are no
// diagnostics.
func (ds Diagnostics) OneLine() error {
	if len(ds) == 0 {
		return nil
	}
	return errors.New(strings.Join(each(ds, func(d Diagnostic) string { return d.Msg }), "; "))
}

// Line returns the line of the position of, as "line 7", or as "file.go:7" if from is in another file.
func Line(fset *token.FileSet, of, from token.Pos) string {
	at, here := fset.PositionFor(of, false), fset.PositionFor(from, false)
	if at.Filename == here.Filename {
		return fmt.Sprintf("line %d", at.Line)
	}
	return fmt.Sprintf("%s:%d", Relative(filepath.Dir(here.Filename), at.Filename), at.Line)
}

// Relative returns the name of a file relative to dir if that is shorter, and otherwise name.
func Relative(dir, name string) string {
	if rel, err := filepath.Rel(dir, name); err == nil && len(rel) < len(name) {
		return rel
	}
	return name
}

// list joins at least two words, as in "a, b or c" where last is "or".
func list(words []string, last string) string {
	n := len(words) - 1
	return strings.Join(words[:n], ", ") + " " + last + " " + words[n]
}
