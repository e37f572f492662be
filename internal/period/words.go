package period

import (
	"strconv"
	"strings"
)

// Count puts a number before its noun: "1 process", "3 processes".
func Count(n int64, noun string) string { return strconv.FormatInt(n, 10) + " " + Noun(n, noun) }

// Noun returns a noun after a number: "process" for 1, "processes" for 3.
func Noun(n int64, noun string) string {
	switch {
	case n == 1:
		return noun
	case strings.HasSuffix(noun, "s"):
		return noun + "es"
	}
	return noun + "s"
}

// Word returns the name of a period in a sentence: "minute" for "1m", and the text itself if the period has no name. The text is one that
// Format has written.
func Word(text string) string {
	switch text {
	case "1s":
		return "second"
	case "1m":
		return "minute"
	case "1h":
		return "hour"
	case "1d":
		return "day"
	case "1w":
		return "week"
	}
	return text
}

// Calendar returns the name of the windows between the times of a cron expression: "day" for "@daily". It returns "" if they have no name.
// The fields of the expression are separated by single spaces.
func Calendar(cron string) string {
	switch cron {
	case "@hourly", "0 * * * *", "0 0 * * * *":
		return "hour"
	case "@daily", "@midnight", "0 0 * * *", "0 0 0 * * *":
		return "day"
	case "@weekly":
		return "week"
	case "@monthly":
		return "month"
	case "@yearly", "@annually":
		return "year"
	}
	return ""
}
