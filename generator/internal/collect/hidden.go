package collect

// paramHides reports whether a type parameter of the wrapper hides what the package declares under a name.
func (c *methods) paramHides(name string) bool {
	for p := range c.of.TypeParams.TypeParams() {
		if p.Obj().Name() == name {
			return true
		}
	}
	return false
}

// hides reports whether a predeclared name means something else in the wrapper.
func (c *methods) hides(name string) bool {
	return c.paramHides(name) || c.pkg.Types.Scope().Lookup(name) != nil
}

// canMean reports whether the words that wrappers are made of mean in this package what they mean in Go.
func (c *methods) canMean() bool {
	for _, own := range []string{c.object.Name(), c.of.Name} {
		if c.paramHides(own) {
			c.errorf(c.of.Pos, "a wrapper of %s needs the type %s, which a type parameter hides", c.object.Name(), own)
			return false
		}
	}
	words := []string{"nil", "true", "false", "int64"}
	if c.of.TypeParams.Len() > 0 {
		words = append(words, "new")
	}
	for _, word := range words {
		if c.hides(word) {
			c.errorf(c.of.Pos, "a wrapper of %s needs Go's own %s, but another one hides it here", c.object.Name(), word)
			return false
		}
	}
	return true
}
