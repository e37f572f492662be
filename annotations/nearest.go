package annotations

import "strings"

// Suggest completes a message about an unknown word: it is "; did you mean" the nearest of the valid ones, or "".
func Suggest(word string, valid []string) string {
	if near := Nearest(word, valid); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}

// Nearest returns the one of the valid words that word may be a slip of, or "". Case does not count. The first of equally
// near ones wins.
func Nearest(word string, valid []string) string {
	var nearest string
	best := -1
	for _, v := range valid {
		if d, ok := slip([]rune(strings.ToLower(word)), []rune(strings.ToLower(v))); ok && (best < 0 || d < best) {
			nearest, best = v, d
		}
	}
	return nearest
}

// slip returns the edits between a and b if they are few for words so long, or if one is the beginning of the other.
func slip(a, b []rune) (edits int, ok bool) {
	short, long := min(len(a), len(b)), max(len(a), len(b))
	allowed := max(1, long/3)
	if d := distance(a, b); d <= allowed && (d < short || d == 0) {
		return d, true
	}
	return allowed + 1, short >= 3 && string(a[:short]) == string(b[:short])
}

// distance counts the insertions, deletions, replacements and swaps of neighbours that make b of a.
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
