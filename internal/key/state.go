package key

import "strings"

// The words in front of the tag in keys of other things than states. No tag begins with them.
const (
	free  = "free:"
	block = "block:"
)

const end = "}:" // of a subject, which has no braces

// State returns the key of a rule's state for a subject: prefix:name:{subject}:tag. The braces make the subject decide the slot
// alone, so all rules of a call with one subject share a slot.
func State(prefix, name, subject, tag string) string {
	return prefix + ":" + name + ":{" + subject + end + tag
}

// Free returns the key of the free places of a state.
func Free(prefix, name, subject, tag string) string { return State(prefix, name, subject, free+tag) }

// Block returns the key of the block of a state.
func Block(prefix, name, subject, tag string) string { return State(prefix, name, subject, block+tag) }

// FreeOf is Free by the key of the state.
func FreeOf(state string) string { return strings.Replace(state, end, end+free, 1) }

// BlockOf is Block by the key of the state.
func BlockOf(state string) string { return strings.Replace(state, end, end+block, 1) }

// Blocks returns the glob pattern of the keys of all blocks under a prefix, which is a glob pattern.
func Blocks(prefix string) string { return prefix + ":*" + end + block + "*" }

// Parts are those of the key of a state or a block.
type Parts struct {
	Owner   string // prefix:name
	Subject string
	Tag     string // of the rule
	IsBlock bool
}

// Split takes the key of a state or a block apart. It reports false of other keys.
func Split(key string) (p Parts, ok bool) {
	owner, rest, opens := strings.Cut(key, ":{")
	subject, tag, closes := strings.Cut(rest, end)
	of, isBlock := strings.CutPrefix(tag, block)
	return Parts{owner, subject, of, isBlock}, opens && closes && !strings.HasPrefix(tag, free)
}
