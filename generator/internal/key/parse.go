package key

import (
	"errors"
	"fmt"
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

// maxLength bounds what is parsed: parentheses nest as deep as the text is long.
const maxLength = 4 << 10

// parse returns the tree, or nil after reporting what is wrong.
func (c *compiler) parse() ast.Node {
	src := c.expr.Value
	switch {
	case strings.TrimSpace(src) == "":
		c.errorAt(len(src), "the expression is empty")
		return nil
	case len(src) > maxLength:
		c.errorAt(0, "the expression is %d bytes long; at most %d are allowed", len(src), maxLength)
		return nil
	}
	if i := comment(src); i >= 0 {
		c.errorAt(i, "a comment cannot stand in an expression")
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
		c.errorAt(len(src), "unexpected end of the expression")
	case errors.As(err, &bad) && strings.Contains(bad.Message, " literal: "):
		c.errorAt(numberBefore(src, offset(src, bad.To)), "the number is too large, or none")
	case errors.As(err, &bad):
		c.errorAt(offset(src, bad.From), "%s", syntaxMessage(bad.Message))
	default:
		c.errorAt(0, "%v", err)
	}
	return nil
}

// comment returns where a comment begins between the words of src, or -1.
func comment(src string) int {
	lex := lexer.New()
	lex.Reset(file.NewSource(src))
	for end := 0; ; {
		word, err := lex.Next()
		gap := strings.TrimLeftFunc(src[end:], unicode.IsSpace)
		if strings.HasPrefix(gap, "//") || strings.HasPrefix(gap, "/*") {
			return len(src) - len(gap)
		}
		if err != nil || word.Kind == lexer.EOF {
			return -1
		}
		end = offset(src, word.To)
	}
}

// offset converts expr's count of runes to a count of bytes.
func offset(src string, runes int) int {
	for i := range src {
		if runes <= 0 {
			return i
		}
		runes--
	}
	return len(src)
}

// numberBefore returns where the number starts behind which the parser found it wrong.
func numberBefore(src string, i int) int {
	end := strings.LastIndexAny(src[:i], "0123456789abcdefABCDEF")
	begin := strings.LastIndexFunc(src[:end+1], func(r rune) bool { return r != '.' && r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return begin + 1
}

// syntaxMessage puts what expr's parser says into our words.
func syntaxMessage(msg string) string {
	if token, ok := strings.CutPrefix(msg, "unexpected token "); ok {
		if _, quoted, ok := strings.Cut(token, "("); ok {
			var word string
			if _, err := fmt.Sscanf(strings.TrimSuffix(quoted, ")"), "%q", &word); err == nil {
				return "unexpected " + word
			}
		}
		return "unexpected " + strings.ToLower(token)
	}
	if _, char, ok := strings.Cut(msg, "unrecognized character: "); ok {
		_, char, _ = strings.Cut(char, " ")
		return "unexpected character " + char
	}
	if op, ok := strings.CutPrefix(msg, "Operator ("); ok {
		op, _, _ = strings.Cut(op, ")")
		return "?? and " + op + " cannot be mixed without parentheses"
	}
	switch msg {
	case "literal not terminated":
		return "the text has no closing quote"
	case "compilation failed: expression exceeds maximum allowed nodes":
		return "the expression has too many parts"
	}
	r, n := utf8.DecodeRuneInString(msg)
	return string(unicode.ToLower(r)) + msg[n:]
}

// start returns the node with which the text of n begins: errors about a whole operand stand there.
func start(n ast.Node) ast.Node {
	for {
		switch x := n.(type) {
		case *ast.BinaryNode:
			n = x.Left
		case *ast.ChainNode:
			n = x.Node
		case *ast.MemberNode:
			n = x.Node
		case *ast.SliceNode:
			n = x.Node
		case *ast.CallNode:
			n = x.Callee
		case *ast.ConditionalNode:
			n = x.Cond
		default:
			return n
		}
	}
}

func (c *compiler) errorf(n ast.Node, format string, args ...any) *term {
	c.errorAt(offset(c.expr.Value, n.Location().From), format, args...)
	return nil
}

func (c *compiler) errorAt(i int, format string, args ...any) {
	c.errs.Add(c.expr.At(i), format, args...)
}
