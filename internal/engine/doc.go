// Package engine holds the rate limiting algorithms as arithmetic on integers. It answers three questions: when does a rule admit a cost,
// what does an admission change, and what does a refund change? The Lua files of package redisstore do the same arithmetic on Redis. A file
// there has the same name as its file here, and so do most functions that do the same.
//
// The algorithms are no store: they have no locks, read no clock, and do no input or output. Their times and durations are whole microseconds.
// Times are Unix times on the clock of the store.
//
// These words have a fixed meaning:
//
//	rule        one limit: how it counts, over which window
//	permit      one unit of a limit
//	subject     the owner of a count, such as a phone number or a user
//	claim       what one call asks of one rule, for one subject
//	call        claims that are decided together: all are charged, or none
//	verdict     the answer to a call
//	count       what one rule counts for one subject
//	state       what a store keeps of a count
//	charge      permits that an admitted call took
//	lease       permits that a process takes ahead and hands out itself
//	place       a future time for which a waiting call is charged
//	free place  a place that was given up while others were after it
//	interval    free places side by side: no call has a place between two of them
//	line        the calls of this process that wait for one count: those with places in their order, and those that hold
//	hold        to wait in a line without a place: until a pause ends, others release permits, or earlier calls go on
//	turn        the time when the first call that holds in a line may ask the store
//	earliest    the first time at which a rule admits a claim
//	room        how many permits a rule would admit now
//	slot        the unit by which a Redis Cluster spreads keys over its servers; each key is in one slot
//	run         the calls that one execution of the script decides on Redis
package engine
