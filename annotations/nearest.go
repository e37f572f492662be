package annotations

import "strings"

// Suggest returns the end of a message about an unknown word: "; did you mean x?" if a valid word is near, or "".
func Suggest(word string, valid []string) string {
	if near := Nearest(word, valid); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// Nearest returns the valid word that word is probably a misspelling of, or "". It ignores case. Of equally near words it
// returns the first.
func Nearest(word string, valid []string) string {
	var nearest string
	best := -1
	for _, v := range valid {
		if d, ok := misspelling([]rune(strings.ToLower(word)), []rune(strings.ToLower(v))); ok && (best < 0 || d < best) {
			nearest, best = v, d
		}
	}
	return nearest
}

// misspelling reports whether a is close enough to b to be a misspelling of it, and by how many edits. Longer words may differ
// by more edits. A word of which the other is the beginning is close too, but farther away than any word within these edits.
func misspelling(a, b []rune) (edits int, ok bool) {
	short, long := min(len(a), len(b)), max(len(a), len(b))
	allowed := max(1, long/3)
	if d := distance(a, b); d <= allowed && (d < short || d == 0) {
		return d, true
	}
	return allowed + 1, short >= 3 && string(a[:short]) == string(b[:short])
}

// distance returns the number of edits that turn a into b: insertions, deletions, replacements, and swaps of neighbours.
func distance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			if i == 0 || j == 0 {
				rows[i][j] = i + j
				continue
			}
			replace := rows[i-1][j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
