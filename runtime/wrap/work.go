package wrap

import "errors"

// Work counts the steps of one evaluation. A step is a byte of a text or an element of a list that a function reads within a loop.
type Work int

// maxWork is how many steps an evaluation may take.
const maxWork = 1 << 20

var errWork = errors.New("the expression has too much to do for these values")

// add counts the steps of a round, and one for the round itself. It panics as [Must] does if there are more than maxWork.
func (w *Work) add(steps int) {
	if steps >= maxWork-int(*w) {
		panic(failure{errWork, false})
	}
	*w += Work(steps) + 1
}

// ReadText returns text, and counts its bytes. It panics as [Must] does if there were more than 2^20 steps.
func ReadText[S ~string](w *Work, text S) S {
	w.add(len(text))
	return text
}

// ReadList returns list, and counts its elements, as [ReadText] does.
func ReadList[S ~[]E, E any](w *Work, list S) S {
	w.add(len(list))
	return list
}

// ReadMap returns table, and counts its elements, as [ReadText] does.
func ReadMap[M ~map[K]V, K comparable, V any](w *Work, table M) M {
	w.add(len(table))
	return table
}
