package emit

import (
	"fmt"
	"go/token"
	"strings"
	"unicode/utf8"

	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/runtime"
)

// typeDoc is the doc comment of a wrapper.
func typeDoc(w *model.Wrapper) string {
	iface := w.Object.Name()
	article := "a"
	if strings.ContainsRune("AEIOUaeiou", rune(iface[0])) {
		article = "an"
	}
	name := "[" + iface + "]"
	if !token.IsExported(iface) {
		name = iface
	}
	doc := wrapped(fmt.Sprintf("%s is %s %s that passes on to another one the calls its limits allow. "+
		"It has the methods of %s alone, whatever the other one has besides.", w.Name, article, name, iface))
	if len(w.Rules) > 0 {
		doc += "\n\n" + wrapped("Its methods together "+may(w.Rules)+".")
	}
	return doc
}

// methodDoc is the user's doc comment, with a paragraph on the limits.
func methodDoc(w *model.Wrapper, m *model.Method) string {
	subject := "It"
	if m.Doc == "" {
		subject = m.Name
	}
	var own, ofType []*model.Rule
	for _, r := range m.Rules {
		if r.OfType {
			ofType = append(ofType, r)
		} else {
			own = append(own, r)
		}
	}
	var said []string
	say := func(sentence string) {
		said = append(said, subject+" "+sentence+".")
		subject = "It"
	}
	if len(own) > 0 {
		say(may(own))
	}
	switch {
	case len(ofType) > 0:
		say("counts towards what the methods of " + w.Object.Name() + " share")
	case m.Spared:
		say("returns no error, so that the limits of " + w.Object.Name() + " do not apply to it")
	case m.Skipped && len(w.Rules) > 0:
		say("is free of the limits of " + w.Object.Name())
	}
	return m.Doc + "\n" + wrapped(strings.Join(said, " "))
}

// may says what rules allow: "may be called 100 times in 1m for one id, and once in 1s".
func may(rules []*model.Rule) string {
	phrases := make([]string, len(rules))
	for i, r := range rules {
		if r.Limit.Limit == 0 && r.Rule.When.IsZero() {
			return "may not be called"
		}
		phrases[i] = phrase(r)
	}
	last := len(phrases) - 1
	if last == 0 {
		return "may be called " + phrases[0]
	}
	return "may be called " + strings.Join(phrases[:last], ", ") + ", and " + phrases[last]
}

func phrase(r *model.Rule) string {
	s := times(r.Limit.Limit) + " " + window(r.Limit)
	if r.Limit.Burst > 0 && r.Limit.Burst != r.Limit.Limit {
		s += fmt.Sprintf(" with up to %d at once", r.Limit.Burst)
	}
	if r.Limit.Key != "" {
		s += " for one " + whom(r)
	}
	switch {
	case !r.Rule.Cost.Expr.IsZero():
		s += ", where a call counts as " + oneLine(r.Rule.Cost.Expr.Value)
	case r.Rule.Cost.Pos.IsValid() && r.Rule.Cost.Int != 1:
		s += fmt.Sprintf(", where a call counts as %d", r.Rule.Cost.Int)
	}
	if !r.Rule.When.IsZero() {
		s += ", if " + oneLine(r.Rule.When.Value)
	}
	return s
}

func times(n int64) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

func window(r runtime.Rule) string {
	if r.Cron != "" {
		zone := r.TZ
		if zone == "" {
			zone = "UTC"
		}
		return fmt.Sprintf("in each period of cron %q (%s)", r.Cron, zone)
	}
	w := r.Window()
	w = w[strings.LastIndex(w, ":")+1:]
	if r.Algorithm == runtime.FixedWindow {
		return "in a fixed window of " + w
	}
	return "in " + w
}

// whom is the island of a key that consists of one, else the key as written.
func whom(r *model.Rule) string {
	if parts := r.Key.Parts; len(parts) == 1 && !parts[0].Island.IsZero() {
		return oneLine(parts[0].Island.Value)
	}
	return oneLine(r.Limit.Key)
}

// oneLine keeps what a raw string may hold from leaving its comment.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// wrapped breaks text into lines that are easy to read.
func wrapped(text string) string {
	const width = 100
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(text) {
		switch n := utf8.RuneCountInString(word); {
		case column == 0:
			column = n
		case column+1+n > width:
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
