package emit

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ratelimit-go/ratelimit/generator/internal/expr"
	"github.com/ratelimit-go/ratelimit/generator/internal/model"
	"github.com/ratelimit-go/ratelimit/generator/internal/names"
	"github.com/ratelimit-go/ratelimit/internal/printable"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
	"github.com/ratelimit-go/ratelimit/runtime/wrap"
)

// join returns a template as one Go expression. For the island with an index, the function island returns Go code, or, if text is true,
// constant text. Neighbouring texts become one string:
//
//	"sms:" + phone
func join(pieces []model.Piece, island func(i int) (code string, text bool)) string {
	var terms []string
	known := ""
	for i, p := range pieces {
		value, text := p.Literal, true
		if p.Code != nil {
			value, text = island(i)
		}
		if text {
			known += value
			continue
		}
		if known != "" {
			terms = append(terms, quote(known))
		}
		known, terms = "", append(terms, value)
	}
	if known != "" || terms == nil {
		terms = append(terms, quote(known))
	}
	if line := strings.Join(terms, " + "); names.Width(line) <= longest {
		return line
	}
	return strings.Join(terms, " +\n")
}

// spelled returns the text of an expression that is a string literal.
func spelled(c *expr.Code) (text string, ok bool) {
	if text, ok = c.Constant.(string); ok && c.Spelled {
		return text, true
	}
	return "", false
}

// separated returns pieces with a colon between neighbouring islands, and between an island and a literal that begins with a backslash or
// is not UTF-8: its beginning cannot be escaped.
func separated(pieces []model.Piece) []model.Piece {
	var out []model.Piece
	for i, p := range pieces {
		first, n := utf8.DecodeRuneInString(p.Literal)
		if i > 0 && pieces[i-1].Code != nil && (p.Code != nil || first == '\\' || first == utf8.RuneError && n == 1) {
			out = append(out, model.Piece{Literal: ":"})
		}
		out = append(out, p)
	}
	return out
}

// joined returns the Go expression for a key or a member. In a value before the last one, the rune that follows it is escaped, so
// different values never give the same text:
//
//	wrap.Part(tenant, ':') + ":" + phone
func (w *writer) joined(pieces []model.Piece) string {
	pieces = separated(pieces)
	return join(pieces, func(i int) (string, bool) {
		p := pieces[i]
		text, isText := spelled(p.Code)
		if !slices.ContainsFunc(pieces[i+1:], func(later model.Piece) bool { return later.Code != nil }) {
			if isText {
				return text, true
			}
			return w.code(p.Code, w.rulesOf[w.method], p.Expr, "part"), false
		}
		next, _ := utf8.DecodeRuneInString(pieces[i+1].Literal)
		if isText {
			return wrap.Part(text, next), true
		}
		value := w.code(p.Code, w.rulesOf[w.method], p.Expr, "part")
		return w.wrap("Part") + "(" + value + ", " + strconv.QuoteRune(next) + ")", false
	})
}

// described returns the statements of leave for the error in the variable err, with the message of the rule that the error is about:
//
//	return wrap.Describe(s.limits, err, wrap.AsDeclared, wrap.Printable(phone)+" has had ten codes today.")
func (w *writer) described(err string, leave func(err string) string) string {
	rules := describedRules(w.method)
	if len(rules) == 0 {
		return leave(err)
	}
	var args []string
	for _, r := range rules {
		if len(r.Message) == 0 {
			args = append(args, w.wrap("AsDeclared"))
		} else {
			args = append(args, w.message(r))
		}
	}
	return leave(w.forRules(w.wrap("Describe"), w.limits+", "+err, args...))
}

// describedRules returns the rules of m up to the last one whose message depends on the call.
func describedRules(m *model.Method) []*model.Rule {
	rules := m.Rules
	for len(rules) > 0 && len(rules[len(rules)-1].Message) == 0 {
		rules = rules[:len(rules)-1]
	}
	return rules
}

// maxShown bounds a value in a message, in bytes, as wrap.Printable does.
const maxShown = 128

// message returns the Go expression for the message of a refusal. It escapes values:
//
//	wrap.Printable(phone) + " has had ten codes today."
func (w *writer) message(r *model.Rule) string {
	fails := false
	text := join(r.Message, func(i int) (string, bool) {
		p := r.Message[i]
		hashed := r.Declared.Hash == ratelimit.HashSubject && w.isHashed(p.Expr)
		if text, ok := spelled(p.Code); ok && !hashed {
			return printable.Text(text, maxShown), true
		}
		value := w.values["part "+p.Code.Text]
		if value == "" {
			written := w.write(p.Code)
			value, fails = inline(written), fails || written.Fails
		}
		if hashed {
			return w.wrap("Shown") + "(" + w.limits + ", " + value + ")", false
		}
		return w.wrap("Printable") + "(" + value + ")", false
	})
	if fails {
		return w.wrap("Message") + "(" + w.rulesOf[w.method] + ", func() string {\nreturn " + text + "\n})"
	}
	return text
}

// isHashed reports whether an expression is part of a key or member that the limiter may hash.
func (w *writer) isHashed(expr string) bool {
	return slices.ContainsFunc(w.method.Rules, func(r *model.Rule) bool {
		is := func(p model.Piece) bool { return p.Code != nil && p.Expr == expr }
		return r.Declared.Hash == ratelimit.HashSubject && (slices.ContainsFunc(r.Subject, is) || slices.ContainsFunc(r.Member, is))
	})
}
