package key

// State returns the key of a rule's state for a subject: prefix:name:{subject}:tag. The braces make the subject decide the slot
// alone, so all rules of a call with one subject share a slot.
func State(prefix, name, subject, tag string) string {
	return prefix + ":" + name + ":{" + subject + "}:" + tag
}

// Free returns the key of the free places of a state. No tag begins with the word that stands in front of it.
func Free(prefix, name, subject, tag string) string { return State(prefix, name, subject, "free:"+tag) }

// Block returns the key of the block of a state.
func Block(prefix, name, subject, tag string) string {
	return State(prefix, name, subject, "block:"+tag)
}
