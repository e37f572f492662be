package names

import (
	"slices"
	"time"
)

type unit struct {
	name string
	time.Duration
}

var units = []unit{
	{"Hour", time.Hour}, {"Minute", time.Minute}, {"Second", time.Second},
	{"Millisecond", time.Millisecond}, {"Microsecond", time.Microsecond}, {"Nanosecond", 1},
}

// Duration returns d as a number of the largest unit of package time that leaves no fraction: 10 and Minute for 10 * time.Minute.
func Duration(d time.Duration) (count int64, unitName string) {
	u := units[slices.IndexFunc(units, func(u unit) bool { return d%u.Duration == 0 })]
	return int64(d / u.Duration), u.name
}
