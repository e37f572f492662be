package engine

// Constants are the numbers that the script on Redis has in common with this package, by their names there.
var Constants = map[string]int64{
	"ENFORCE": int64(Enforce), "SHADOW": int64(Shadow), "TRIGGER": int64(Trigger),

	"MAX_INTERVALS": maxIntervals, "MAX_LOOKS": maxLooks, // places
	"MAX_MOVED": maxMoved, "MAX_PASSED": maxPassed, "MAX_SEARCHED": maxSearched, "MAX_TIMES": MaxTimes, // sliding windows
	"MAX_AMOUNTS": MaxAmounts, "MOST_EXACT": mostExact, "MOST_PLACES": mostPlaces, // of amounts
	"MAX_AHEAD": maxAhead, "MAX_REMOVED": maxRemoved, "MOST_USED": mostUsed, // other windows
	"LONGEST": longest, "MAX_DEBT": maxDebt, "MEMORY": memory, "MAX_BUCKET": MaxBucketLimit, // buckets
	"ASK_EVERY": askEvery, // running calls
	"DAY":       day,
	"NEVER":     never,
}
