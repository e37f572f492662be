package emit

import (
	"fmt"
	"go/build/constraint"
	doccomment "go/doc/comment"
	"go/token"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
	"github.com/ratelimit-go/ratelimit/internal/printable"
)

// typeDoc returns the doc comment of a wrapper:
//
//	LimitedSender wraps a [Sender] and enforces its rate limits.
func typeDoc(w *model.Wrapper) string {
	name := w.Object.Name()
	doc := fmt.Sprintf("%s wraps %s %s and enforces its rate limits.", w.Name, names.Article(name), link(name))
	if w.Kind == model.Concrete {
		doc += fmt.Sprintf(" It has the exported methods of %s.", name)
	}
	if w.OwnRateLimits {
		doc += fmt.Sprintf(" RateLimits is a method of %s here; %s returns the rules.", name, w.RulesFunc)
	}
	return joined(wrapped(doc), w.Doc, sharedDoc(w))
}

// limitDoc returns the doc comment of the function for a func type or a struct of funcs. The name of its parameter is next:
//
//	LimitJob wraps next with the limits declared on [Job]. Use what it returns in its place:
func limitDoc(w *model.Wrapper, next string) string {
	name := link(w.Object.Name())
	if w.Kind == model.Func {
		doc := fmt.Sprintf("%s wraps %s with the limits declared on %s. Use what it returns in its place:", w.New, next, name)
		return joined(wrapped(doc)+example(w, next), w.Doc, limits(w, w.Methods[0]))
	}
	doc := fmt.Sprintf("%s returns a copy of %s whose funcs enforce the limits declared on %s. A nil func stays nil. For example:", w.New, next, name)
	docs := []string{wrapped(doc) + example(w, next), w.Doc, sharedDoc(w)}
	for _, m := range w.Methods {
		docs = append(docs, limits(w, m))
	}
	return joined(docs...)
}

// joined joins texts that are not empty, with an empty line between them.
func joined(texts ...string) string {
	var found []string
	for _, t := range texts {
		if t = strings.TrimSpace(t); t != "" {
			found = append(found, t)
		}
	}
	if len(found) > 1 {
		for i := range found {
			found[i] = withStops(found[i])
		}
	}
	return strings.Join(found, "\n\n")
}

// withStops ends the first and the last paragraph of a text with a full stop where gofmt would make it a heading between other paragraphs. For
// example, "Sender sends codes" becomes:
//
//	Sender sends codes.
func withStops(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for _, i := range []int{0, len(paragraphs) - 1} {
		p := paragraphs[i]
		content := new(doccomment.Parser).Parse("It.\n\n" + p + "\n\nIt.").Content
		if _, isHeading := content[1].(*doccomment.Heading); isHeading && !strings.HasPrefix(p, "#") {
			paragraphs[i] += "."
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// sharedDoc returns the paragraph about the limits that all methods share:
//
//	Limits of all methods together: 100 per minute per client IP.
func sharedDoc(w *model.Wrapper) string {
	if len(w.Rules) == 0 {
		return ""
	}
	return list("Limits of all "+plural(w)+" together:", phrases(w.Rules), "")
}

// link returns the name of a type, as a link if it can be one:
//
//	[Sender]
func link(name string) string {
	if token.IsExported(name) {
		return "[" + name + "]"
	}
	return name
}

// example returns the lines of a doc comment that show how to use the wrapper. The parameter with the wrapped value is called next:
//
//	limited := NewLimitedSender(next, limiter)
func example(w *model.Wrapper, next string) string {
	return fmt.Sprintf("\n\n\tlimiter := ratelimit.New(redisstore.New(client), ratelimit.WithPrefix(\"myapp\"))\n\tlimited := %s(%s, limiter)", w.New, next)
}

// methodDoc returns the user's doc comment with a paragraph about the limits:
//
//	SendCode sends a login code to phone.
//
//	Limits: 1 per minute per {phone}.
func methodDoc(w *model.Wrapper, m *model.Method) string {
	doc := m.Doc
	if doc == "" {
		doc = wrapped(m.Name + " calls " + methodLink(w, m) + ".")
	}
	return joined(doc, limits(w, m))
}

// methodLink names a method, as a link if it can be one:
//
//	[Sender.SendCode]
func methodLink(w *model.Wrapper, m *model.Method) string {
	name := w.Object.Name() + "." + m.Name
	if token.IsExported(w.Object.Name()) && token.IsExported(m.Name) {
		return "[" + name + "]"
	}
	return name
}

// guardDoc returns the doc comment of a guard's method:
//
//	Buy decides whether a call of [Service.Buy] may go on.
//
//	Limits: 1 per minute per {user}.
func guardDoc(w *model.Wrapper, m *model.Method) string {
	doc := fmt.Sprintf("%s decides whether a call of %s may go on.", m.Name, methodLink(w, m))
	if m.LooksBack() {
		doc += " If the error is nil, defer done at once, with pointers to the named results."
	}
	return joined(wrapped(doc), limits(w, m))
}

// limits describes the limits of m. For example:
//
//	Limits: 1 per minute per {phone}.
func limits(w *model.Wrapper, m *model.Method) string {
	subject, of, to := "It", "", ""
	if w.Kind == model.Fields {
		subject, of, to = m.Name, " of "+m.Name, " to "+m.Name
	}
	own := slices.DeleteFunc(slices.Clone(m.Rules), func(r *model.Rule) bool { return r.OfType })
	items := phrases(own)
	if len(own) < len(m.Rules) {
		items = append(items, "those that all "+plural(w)+" share")
	}
	after := ""
	if m.Fallback != nil {
		after = "Refused calls" + of + " go to " + strings.TrimPrefix(m.Fallback.Func.Value, ".") + "."
	}
	switch {
	case len(items) > 0:
		return list("Limits"+of+":", items, after)
	case m.Spared:
		return wrapped(subject + " has no error result, so no limit applies.")
	}
	return "No limit applies" + to + "."
}

// list returns a paragraph that begins with title and has one item, or a list of several items as gofmt formats it. The text of after follows.
// For example:
//
//	Limits:
//	  - 1 per minute per {phone}
//	  - 100 per hour per client IP
func list(title string, items []string, after string) string {
	if len(items) == 1 {
		return wrapped(title + " " + items[0] + ". " + after)
	}
	for _, item := range items {
		title += "\n  - " + strings.ReplaceAll(wrapped(item), "\n", "\n    ")
	}
	return joined(title, wrapped(after))
}

// plural returns the word for the methods of w.
func plural(w *model.Wrapper) string {
	if w.Kind == model.Fields {
		return "funcs"
	}
	return "methods"
}

// oneLine returns a text of a directive as part of a comment, in which no line ends within it. It also replaces pairs of single quotes and
// of backquotes, which gofmt would turn into typographic quotes.
func oneLine(s string) string {
	return strings.ReplaceAll(unpaired.Replace(printable.Text(strings.Join(strings.Fields(s), " "), math.MaxInt)), " ", unbroken)
}

var unpaired = strings.NewReplacer("''", `""`, "``", `""`)

// unbroken is a space at which no line ends. The text of a directive cannot have it, because it is not printable.
const unbroken = "\x00"

// wrapped breaks text into lines of about 100 characters.
func wrapped(text string) string {
	const width = 100
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch n := utf8.RuneCountInString(names.Wished(word)); {
		case column == 0:
			column = n
		case column+1+n > width && !strings.HasPrefix(word, plusBuild):
			b.WriteByte('\n')
			column = n
		default:
			b.WriteByte(' ')
			column += 1 + n
		}
		b.WriteString(word)
	}
	return strings.ReplaceAll(b.String(), unbroken, " ")
}

// plusBuild at the start of a line is a build constraint for gofmt.
const plusBuild = "+build"

// withoutConstraints puts // before lines of a doc comment that gofmt would move to the top of the file as build constraints.
func withoutConstraints(lines []string) {
	for i, l := range lines {
		if text := strings.TrimSpace(l); constraint.IsPlusBuild("//" + text) {
			lines[i] = strings.Replace(l, plusBuild, "// "+plusBuild, 1)
		}
	}
}
