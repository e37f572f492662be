package collect

import "github.com/ratelimit-go/ratelimit/generator/internal/model"

// namesAreFree reports whether the predeclared names that the code of the wrapper needs have Go's own meaning. It reports an error about
// the first that something else hides.
func (c *methods) namesAreFree() bool {
	words := []string{"nil", "true", "false", "int64"}
	if len(c.of.TypeParams) > 0 {
		words = append(words, "new")
	}
	if c.of.Kind == model.Guard {
		words = append(words, "recover", "panic")
	}
	for _, word := range words {
		if c.from().Redefined(word) {
			c.errorf(c.of.Pos, "what is generated for %s needs Go's own %s, but another one hides it here", c.object.Name(), word)
			return false
		}
	}
	return true
}
