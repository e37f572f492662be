package collect

// namesAreFree reports whether the code of the wrapper can use its own types and the predeclared names of Go that it needs. It
// reports an error about the first that something else hides.
func (c *methods) namesAreFree() bool {
	for _, own := range []string{c.object.Name(), c.of.Name} {
		if c.from().Hidden(own) {
			c.errorf(c.of.Pos, "a wrapper of %s needs the type %s, which a type parameter hides", c.object.Name(), own)
			return false
		}
	}
	words := []string{"nil", "true", "false", "int64"}
	if c.of.TypeParams.Len() > 0 {
		words = append(words, "new")
	}
	for _, word := range words {
		if c.from().Redefined(word) {
			c.errorf(c.of.Pos, "a wrapper of %s needs Go's own %s, but another one hides it here", c.object.Name(), word)
			return false
		}
	}
	return true
}
