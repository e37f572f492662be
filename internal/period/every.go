package period

import (
	"fmt"
	"strconv"
)

// Every is the length of windows that begin at a subject's own time: a number of days, weeks, months or years.
type Every struct {
	N    int
	Unit string // d, w, mo or y
}

// WantEvery describes a valid Every, for error messages.
const WantEvery = "1d to 366d, 1w to 52w, 1mo to 12mo or 1y to 10y"

// calendarUnits are the units of an Every: the largest number, the unit's name, and its length in days and in months, of which one is 0.
var calendarUnits = map[string]struct {
	most         int
	name         string
	days, months int
}{
	"d":  {366, "day", 1, 0},
	"w":  {52, "week", 7, 0},
	"mo": {12, "month", 0, 1},
	"y":  {10, "year", 0, 12},
}

// ParseEvery parses an Every, such as 1mo. Each has one text: 01mo and 1d12h are errors.
func ParseEvery(text string) (Every, error) {
	end := digits(text)
	n, _ := strconv.Atoi(text[:end])
	e := Every{n, text[end:]}
	if n < 1 || n > calendarUnits[e.Unit].most || text != e.String() {
		return Every{}, fmt.Errorf("found %q; expected %s", text, WantEvery)
	}
	return e, nil
}

// String returns the text of ParseEvery.
func (e Every) String() string { return strconv.Itoa(e.N) + e.Unit }

// Words returns what stands after "per" in a sentence: "month" for 1mo, and "3 months" for 3mo.
func (e Every) Words() string {
	name := calendarUnits[e.Unit].name
	if e.N == 1 {
		return name
	}
	return Count(int64(e.N), name)
}

// Length returns how many days or months it is. The other number is 0.
func (e Every) Length() (days, months int) {
	unit := calendarUnits[e.Unit]
	return e.N * unit.days, e.N * unit.months
}
