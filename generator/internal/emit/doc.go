package emit

import (
	"fmt"
	"go/build/constraint"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/ratelimit-go/ratelimit/annotations"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// typeDoc is the doc comment of a wrapper.
func typeDoc(w *model.Wrapper) string {
	name := w.Object.Name()
	doc := fmt.Sprintf("%s is %s that passes on to another one the calls its limits allow. "+
		"It has the methods of %s alone, whatever the other one has besides.", w.Name, withArticle(link(name)), name)
	if w.Kind == model.Concrete {
		doc = fmt.Sprintf("%s has the exported methods of %s, to which it passes on the calls its limits allow.",
			w.Name, withArticle(link(name)))
	}
	return wrapped(doc) + sharedDoc(w)
}

// limitDoc is the doc comment of the function for a func type or a struct of funcs. next is the name of its parameter.
func limitDoc(w *model.Wrapper, next string) string {
	name := w.Object.Name()
	if w.Kind == model.Func {
		m := w.Methods[0]
		doc := fmt.Sprintf("%s returns %s that passes on to %s the calls its limits allow. ", w.New, withArticle(link(name)), next)
		return wrapped(doc + sentences(w, m, "It"))
	}
	doc := wrapped(fmt.Sprintf("%s returns a copy of %s whose funcs pass on to it the calls their limits allow. "+
		"A nil func stays nil.", w.New, next)) + sharedDoc(w)
	for _, m := range w.Methods {
		if said := sentences(w, m, m.Name); said != "" {
			doc += "\n\n" + wrapped(said)
		}
	}
	return doc
}

// sharedDoc is the paragraph on the limits that all methods share.
func sharedDoc(w *model.Wrapper) string {
	if len(w.Rules) == 0 {
		return ""
	}
	said := allow(w.Rules)
	for i := range said {
		said[i] = "Its " + plural(w) + " together " + said[i] + "."
	}
	return "\n\n" + wrapped(strings.Join(said, " "))
}

func link(name string) string {
	if token.IsExported(name) {
		return "[" + name + "]"
	}
	return name
}

func withArticle(name string) string {
	if strings.ContainsRune("AEIOUaeiou", rune(strings.TrimPrefix(name, "[")[0])) {
		return "an " + name
	}
	return "a " + name
}

// methodDoc is the user's doc comment, with a paragraph on the limits.
func methodDoc(w *model.Wrapper, m *model.Method) string {
	subject := "It"
	if m.Doc == "" {
		subject = m.Name
	}
	return m.Doc + "\n" + wrapped(sentences(w, m, subject))
}

// sentences says what the limits of m are; the first sentence is about subject.
func sentences(w *model.Wrapper, m *model.Method, subject string) string {
	var own, ofType []*model.Rule
	for _, r := range m.Rules {
		if r.OfType {
			ofType = append(ofType, r)
		} else {
			own = append(own, r)
		}
	}
	said := allow(own)
	switch {
	case len(ofType) > 0:
		said = append(said, "counts towards what the "+plural(w)+" of "+w.Object.Name()+" share")
	case m.Spared:
		said = append(said, "returns no error, so that the limits of "+w.Object.Name()+" do not apply to it")
	case m.Skipped && len(w.Rules) > 0:
		said = append(said, "is free of the limits of "+w.Object.Name())
	}
	if m.Fallback != nil {
		said = append(said, "leaves refused calls to "+strings.TrimPrefix(m.Fallback.Func.Value, "."))
	}
	for i, s := range said {
		said[i] = subject + " " + s + "."
		subject = "It"
	}
	return strings.Join(said, " ")
}

// plural is what the methods of w are called.
func plural(w *model.Wrapper) string {
	if w.Kind == model.Fields {
		return "funcs"
	}
	return "methods"
}

// allow says what rules allow: "may be called 100 times in 1m for one id, and once in 1s". Of triggers it says when they
// go off.
func allow(rules []*model.Rule) []string {
	var limits, triggers, said []string
	for _, r := range rules {
		switch {
		case r.Limit.Mode == ratelimit.ModeTrigger:
			triggers = append(triggers, permits(r)+" "+phrase(r))
		case r.Limit.Limit == 0 && r.Rule.When.IsZero() && r.Limit.Mode == ratelimit.ModeEnforce:
			return []string{"may not be called"}
		case r.Limit.Limit == 0:
			said = append(said, "may not be called"+strings.TrimPrefix(condition(r), ","))
		case r.Limit.Distinct != "":
			limits = append(limits, "for "+permits(r)+" different values of "+template(r.Rule.Distinct)+" "+phrase(r))
		default:
			limits = append(limits, times(r)+" "+phrase(r))
		}
	}
	if len(limits) > 0 {
		said = append(said, "may be called "+enumerated(limits))
	}
	if len(triggers) > 0 {
		said = append(said, "sets off a trigger at "+enumerated(triggers))
	}
	return said
}

func enumerated(phrases []string) string {
	last := len(phrases) - 1
	if last == 0 {
		return phrases[0]
	}
	return strings.Join(phrases[:last], ", ") + ", and " + phrases[last]
}

// phrase says in which time, for whom, when, and how.
func phrase(r *model.Rule) string {
	s := window(r.Limit)
	if r.Limit.Burst > 0 && r.Limit.Burst != r.Limit.Limit {
		s += fmt.Sprintf(" with up to %d at once", r.Limit.Burst)
	}
	if slices.ContainsFunc(r.Key.Parts, func(p annotations.Part) bool { return !p.Island.IsZero() }) {
		s += " for one " + template(r.Key)
	}
	switch {
	case !r.Rule.Cost.Expr.IsZero():
		s += ", where a call counts as " + oneLine(r.Rule.Cost.Expr.Value)
	case r.Rule.Cost.Pos.IsValid() && r.Rule.Cost.Int != 1:
		s += fmt.Sprintf(", where a call counts as %d", r.Rule.Cost.Int)
	}
	return s + condition(r)
}

// condition says when a rule applies, and how.
func condition(r *model.Rule) string {
	s := ""
	if !r.Rule.When.IsZero() {
		s += ", if " + oneLine(r.Rule.When.Value)
	}
	if notes := notes(r); len(notes) > 0 {
		s += " (" + strings.Join(notes, ", ") + ")"
	}
	return s
}

// notes are the settings that are not told otherwise.
func notes(rule *model.Rule) []string {
	r, notes := rule.Limit, []string(nil)
	note := func(given bool, format string, args ...any) {
		if given {
			notes = append(notes, fmt.Sprintf(format, args...))
		}
	}
	note(r.Algorithm == ratelimit.LeakyBucket, "evenly spaced")
	note(r.Slices > 0, "counted in %d slices", r.Slices)
	note(r.Prepay, "a call may go into debt")
	note(r.Warmup > 0, "the rate ramps up in %s", period(r.Warmup))
	note(r.Wait > 0, "waits up to %s", period(r.Wait))
	note(r.Queue > 0 && !rule.Rule.Cost.Pos.IsValid(), "at most %d wait", r.Queue)
	note(r.Queue > 0 && rule.Rule.Cost.Pos.IsValid(), "at most %d permits are due to calls that wait", r.Queue)
	note(r.Block > 0, "then blocked for %s", period(r.Block))
	note(r.Mode == ratelimit.ModeShadow, "only reported")
	note(r.Scope == ratelimit.ScopeInstance, "counted per process")
	note(r.Refund == ratelimit.RefundError, "an error gives it back")
	if r.Scope == ratelimit.ScopeInstance {
		return notes // it does without the store
	}
	switch rule.Text("on-error") { // as written: what the type says is not repeated for each of its rules
	case "deny":
		notes = append(notes, "refused while the store is away")
	case "allow":
		notes = append(notes, "allowed while the store is away")
	case "local":
		notes = append(notes, "counted per process while the store is away")
	}
	return notes
}

// permits is the limit, as a number or as written.
func permits(r *model.Rule) string {
	e := oneLine(r.Rule.Limit.Expr.Value)
	switch {
	case e == "":
		return strconv.FormatInt(r.Limit.Limit, 10)
	case strings.Contains(e, " "):
		return "(" + e + ")"
	}
	return e
}

func times(r *model.Rule) string {
	switch p := permits(r); p {
	case "1":
		return "once"
	case "2":
		return "twice"
	default:
		return p + " times"
	}
}

func window(r ratelimit.Rule) string {
	switch {
	case r.Cron != "":
		zone := r.TZ
		if zone == "" {
			zone = "UTC"
		}
		return fmt.Sprintf("in each period of cron %q (%s)", r.Cron, zone)
	case r.Algorithm == ratelimit.FixedWindow:
		return "in a fixed window of " + period(r.Per)
	}
	return "in " + period(r.Per)
}

// period writes a duration as the names of windows do.
func period(d time.Duration) string { return ratelimit.Rule{Per: d}.Window() }

// template is the island of a template that consists of one, else the template as written.
func template(t annotations.Template) string {
	if parts := t.Parts; len(parts) == 1 && !parts[0].Island.IsZero() {
		return oneLine(parts[0].Island.Value)
	}
	return oneLine(t.Value)
}

// oneLine keeps what a directive may hold from leaving its comment, and from being changed by gofmt, which makes one quotation
// mark of two.
func oneLine(s string) string {
	return unpaired.Replace(printable(strings.Join(strings.Fields(s), " ")))
}

var unpaired = strings.NewReplacer("''", `""`, "``", `""`)

// printable writes as escapes what a source file may not hold, or does not show.
func printable(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if r == utf8.RuneError && n == 1 || !unicode.IsPrint(r) {
			quoted := strconv.Quote(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// wrapped breaks text into lines that are easy to read.
func wrapped(text string) string {
	const width = 100
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch n := utf8.RuneCountInString(word); {
		case column == 0:
			column = n
		case column+1+n > width && word != plusBuild:
			b.WriteByte('\n')
			column = n
		default:
			b.WriteByte(' ')
			column += 1 + n
		}
		b.WriteString(word)
	}
	return b.String()
}

// plusBuild at the start of a line is a build constraint to gofmt, wherever it stands.
const plusBuild = "+build"

// withoutConstraints makes lines of a doc comment that gofmt would move to the top of the file comments within the comment.
func withoutConstraints(lines []string) {
	for i, l := range lines {
		if text := strings.TrimSpace(l); constraint.IsPlusBuild("//" + text) {
			lines[i] = strings.Replace(l, plusBuild, "// "+plusBuild, 1)
		}
	}
}
