package key

import "strings"

// The words before the tag in the keys of free places, blocks and pauses. No tag begins with them.
const (
	free  = "free-places:"
	block = "block:"
	pause = "pause:"
)

const end = "}:" // the end of a subject, which contains no braces

// State returns the key of a rule's state for a subject: prefix:name:{subject}:tag. Because of the braces, only the subject decides the
// slot, so all rules of a call with the same subject share a slot.
func State(prefix, name, subject, tag string) string {
	return prefix + ":" + name + ":{" + subject + end + tag
}

// FreeOf returns the key of the free places of the state with this key.
func FreeOf(state string) string { return strings.Replace(state, end, end+free, 1) }

// PauseOf returns the key of the pause of the state with this key.
func PauseOf(state string) string { return strings.Replace(state, end, end+pause, 1) }

// BlockOf returns the key of the block of the state with this key.
func BlockOf(state string) string { return strings.Replace(state, end, end+block, 1) }

// Pattern returns the glob pattern of Redis that matches a text. It matches a space with ?, because a permission cannot contain one.
func Pattern(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`, ` `, `?`).Replace(text)
}

// Blocks returns a glob pattern that matches the keys of all blocks under a prefix. The prefix must be a glob pattern.
func Blocks(prefix string) string { return prefix + ":*" + end + block + "*" }

// Parts are the parts of the key of a state or a block.
type Parts struct {
	Owner   string // prefix:name
	Subject string
	Tag     string // the tag of the rule
	IsBlock bool
}

// Rule returns the name of the rule. ok is false if the key is one of another prefix, such as that of shop:eu beside shop: no rule's name has a colon.
func (p Parts) Rule(prefix string) (name string, ok bool) {
	name = strings.TrimPrefix(p.Owner, prefix+":")
	return name, !strings.Contains(name, ":")
}

// Split splits the key of a state or a block into its parts. For other keys, ok is false.
func Split(key string) (p Parts, ok bool) {
	owner, rest, opens := strings.Cut(key, ":{")
	subject, tag, closes := strings.Cut(rest, end)
	of, isBlock := strings.CutPrefix(tag, block)
	isOther := strings.HasPrefix(tag, "free") || strings.HasPrefix(tag, pause) // also the key of free places of older programs
	return Parts{owner, subject, of, isBlock}, opens && closes && !isOther
}
