package names

import (
	"fmt"
	"regexp"
	"strings"
)

// Marks stand in a text for names. The names are chosen when the text is whole, as the whole text shows which names it needs. A mark is an
// identifier that ends with the name that it gets if that is free. For example:
//
//	ʻ12ʻphone
type Marks struct {
	names  map[string]string // by marks
	choose []func()
}

// NewMarks returns Marks without any marks.
func NewMarks() *Marks { return &Marks{names: map[string]string{}} }

// New returns a mark for a name like hint. Set gives it its name.
func (m *Marks) New(hint string) string {
	mark := fmt.Sprintf("ʻ%dʻ%s", len(m.names), Wished(hint))
	m.names[mark] = hint
	return mark
}

// Set gives a mark its name.
func (m *Marks) Set(mark, name string) { m.names[mark] = name }

// Take returns a mark for the name that the scope gives for the hints when names are chosen.
func (m *Marks) Take(s *Scope, hints ...string) string {
	mark := m.New(hints[0])
	m.Later(func() { m.Set(mark, s.Take(hints...)) })
	return mark
}

// Later calls f when names are chosen. Funcs are called in their order.
func (m *Marks) Later(f func()) { m.choose = append(m.choose, f) }

// Choose chooses the names of all marks.
func (m *Marks) Choose() {
	for _, f := range m.choose {
		f()
	}
}

// In returns text with names in place of marks.
func (m *Marks) In(text string) string {
	return mark.ReplaceAllStringFunc(text, func(found string) string {
		if name, ok := m.names[found]; ok {
			return name
		}
		return found
	})
}

var mark = regexp.MustCompile(`ʻ[0-9]+ʻ([\pL\pN_]+)`)

// Wished returns text as it is if each mark gets the name that it would like to be.
func Wished(text string) string {
	if !strings.Contains(text, "ʻ") {
		return text
	}
	return mark.ReplaceAllString(text, "$1")
}

// Width returns the length of text in bytes if each mark gets the name that it would like to be.
func Width(text string) int { return len(Wished(text)) }
