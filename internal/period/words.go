package period

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
