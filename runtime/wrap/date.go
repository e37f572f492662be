package wrap

import (
	"fmt"
	"time"
)

// layouts are the forms of dates that an expression may leave to us.
var layouts = []string{
	time.DateOnly, time.TimeOnly, time.DateTime, time.RFC3339, time.RFC822, time.RFC850, time.RFC1123,
}

// ParseDate returns the time that a text shows. Such texts are 2026-01-02, 15:04:05, 2026-01-02 15:04:05, 2026-01-02T15:04:05+02:00, and those of
// RFC 822, 850 and 1123. A text without a zone is in the given one, or in UTC if that is nil. It is an error if the text has another form.
func ParseDate(text string, zone *time.Location) (time.Time, error) {
	if zone == nil {
		zone = time.UTC
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, text, zone); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("found %q; expected a date such as 2006-01-02 or 2006-01-02T15:04:05Z", text)
}
