package expr

import (
	"errors"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/expr-lang/expr/ast"
	exprs "github.com/expr-lang/expr/builtin"
	"github.com/expr-lang/expr/conf"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"
	"github.com/expr-lang/expr/parser/lexer"
)

// maxLength is the longest expression in bytes. It bounds the depth of nested parentheses.
const maxLength = 4 << 10

// maxParts is the largest number of nodes in a tree. A chain of comparisons has its inner operands in the tree twice.
const maxParts = 10_000

// maxDepth is the deepest nesting of operands: gofmt needs very long for func literals and calls that are nested deeply.
const maxDepth = 100

// otherSyntax matches a name as other languages write it: #phone or #{phone}.
var otherSyntax = regexp.MustCompile(`^#\{?[\pL_]`)

// parse returns the tree of the expression, or nil after an error.
func (c *compiler) parse() ast.Node {
	src := c.expr.Value
	switch {
	case strings.TrimSpace(src) == "":
		c.errorAt(len(src), "the expression is empty")
		return nil
	case len(src) > maxLength:
		c.errorAt(0, "the expression is %d bytes long; at most %d are allowed", len(src), maxLength)
		return nil
	case otherSyntax.MatchString(src):
		c.errorAt(0, "unexpected #; write {%s}", strings.Trim(src[1:], "{}"))
		return nil
	}
	// Names of the package and of the parameters come before expr's functions, as in expr's own environments.
	own := conf.FunctionsTable{}
	for name := range exprs.Index {
		if c.env.declares(name) {
			own[name] = &exprs.Function{Name: name}
		}
	}
	tree, err := parser.ParseWithConfig(src, &conf.Config{MaxNodes: conf.DefaultMaxNodes, Functions: own})
	var bad *file.Error
	switch {
	case err == nil:
		return tree.Node
	case errors.As(err, &bad) && strings.HasPrefix(bad.Message, "unexpected token EOF"):
		c.errorAt(len(src), "unexpected end of the expression%s", c.shadowed(len(src)))
	case errors.As(err, &bad) && strings.Contains(bad.Message, " literal: "):
		c.errorAt(numberBefore(src, offset(src, bad.To)), "the number is too large, or is not a number")
	default:
		c.refused(err)
	}
	return nil
}

// refused reports an error of expr.
func (c *compiler) refused(err error) {
	bad := &file.Error{Message: err.Error()}
	errors.As(err, &bad)
	at := offset(c.expr.Value, bad.From)
	c.errorAt(at, "%s%s", syntaxMessage(bad.Message), c.shadowed(at))
}

// words returns the tokens of src up to the first error.
func words(src string) []lexer.Token {
	lex := lexer.New()
	lex.Reset(file.NewSource(src))
	var all []lexer.Token
	for {
		word, err := lex.Next()
		if err != nil {
			return all
		}
		if all = append(all, word); word.Kind == lexer.EOF {
			return all
		}
	}
}

// spaced returns src with one space after each token, and without comments.
func spaced(src string) string {
	var b strings.Builder
	for _, word := range words(src) {
		if word.Kind == lexer.String {
			word.Value = strconv.Quote(word.Value)
		}
		b.WriteString(word.Value + " ")
	}
	return b.String()
}

// shadowed returns the end of a message about an error at i. It is not empty if a word before the error is an operator or a function
// of expr, and also a name of the method or of the package.
func (c *compiler) shadowed(i int) (hint string) {
	all := words(c.expr.Value)
	for at, word := range all {
		if offset(c.expr.Value, word.From) > i {
			break
		}
		called := at+1 < len(all) && all[at+1].Is(lexer.Bracket, "(") && (at == 0 || !all[at-1].Is(lexer.Operator, "::"))
		switch {
		case word.Kind == lexer.Operator && c.env.index(word.Value) >= 0:
			hint = "; " + spelling(word.Value)
		case word.Kind == lexer.Operator && c.env.declares(word.Value):
			hint = "; here " + word.Value + " is an operator, not a name of the method or the package"
		case word.Kind == lexer.Identifier && isFunction(word.Value) && called && c.env.declares(word.Value):
			hint = "; " + ownWord(word.Value)
		}
	}
	return hint
}

// isFunction reports whether expr has a function of this name.
func isFunction(name string) bool { _, ok := exprs.Index[name]; return ok }

// ownWord returns advice on how to call a function of expr whose name is declared here.
func ownWord(name string) string {
	return "expr's own " + name + " is ::" + name + " here"
}

// offset converts an offset in runes, as expr counts, to an offset in bytes.
func offset(src string, runes int) int {
	for i := range src {
		if runes <= 0 {
			return i
		}
		runes--
	}
	return len(src)
}

// numberBefore returns the beginning of the number before i.
func numberBefore(src string, i int) int {
	end := strings.LastIndexAny(src[:i], "0123456789abcdefABCDEF")
	begin := strings.LastIndexFunc(src[:end+1], func(r rune) bool { return r != '.' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return begin + 1
}

// syntaxMessages maps messages of expr's parser to ours.
var syntaxMessages = []struct {
	parser *regexp.Regexp
	ours   string
}{
	{regexp.MustCompile(`^unexpected token \w+\("="\)$`), "unexpected =; write == to compare"},
	{regexp.MustCompile(`^unexpected token \w+\("(.*)"\)$`), "unexpected $1"},
	{regexp.MustCompile(`^unrecognized character: \S+ (.*)$`), "unexpected character $1"},
	{regexp.MustCompile(`^Operator \((.*?)\).*$`), "?? and $1 cannot be mixed without parentheses"},
	{regexp.MustCompile(`^literal not terminated$`), "the text has no closing quote"},
	{regexp.MustCompile(`^unclosed comment$`), "the comment has no closing */"},
	{regexp.MustCompile(`^compilation failed: .* maximum allowed nodes$`), "the expression has too many parts"},
}

func syntaxMessage(msg string) string {
	for _, m := range syntaxMessages {
		if m.parser.MatchString(msg) {
			return m.parser.ReplaceAllString(msg, m.ours)
		}
	}
	r, n := utf8.DecodeRuneInString(msg)
	return string(unicode.ToLower(r)) + msg[n:]
}

// start returns the node at which the source of n begins. Errors about a whole operand stand there.
func start(n ast.Node) ast.Node {
	first := n
	ast.Walk(&n, visitor(func(o ast.Node) {
		if o.Location().From < first.Location().From {
			first = o
		}
	}))
	return first
}

// visitor calls a function for each node.
type visitor func(ast.Node)

func (v visitor) Visit(n *ast.Node) { v(*n) }

func (c *compiler) errorf(n ast.Node, format string, args ...any) *term {
	c.errorAt(offset(c.expr.Value, n.Location().From), format, args...)
	return nil
}

func (c *compiler) errorAt(i int, format string, args ...any) {
	c.errs.Add(c.expr.At(i), format, args...)
}
