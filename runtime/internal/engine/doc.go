// Package engine holds the rate limiting algorithms as arithmetic on integers. It answers three questions: when does a rule admit a cost,
// what does an admission change, and what does a refund change? The Lua files of package redisstore do the same arithmetic on Redis. A file
// there has the same name as its file here, and so do most functions that do the same.
//
// The package is not a store. It has no locks, reads no clock, and does no input or output.
//
// Times and durations are whole microseconds. Times are Unix times on the clock of the store.
//
// These words have a fixed meaning:
//
//	rule        one limit: how it counts, over which window
//	permit      one unit of a limit
//	subject     the owner of a count, such as a phone number or a user
//	claim       what one call asks of one rule, for one subject
//	call        claims that are decided together: all are charged, or none
//	verdict     the answer to a call
//	state       what one rule has counted for one subject
//	charge      permits that an admitted call took
//	lease       permits that a process takes ahead and hands out itself
//	place       a future time for which a waiting call is charged
//	free place  a place that was given up while others were after it
//	interval    free places that follow each other, with no call's place between them
//	line        the calls of this process that wait for one count, in the order of their places
//	hold        to wait in a line without a place: until a pause ends, or until others release permits
//	turn        the time when the first call that holds in a line may ask the store
//	earliest    the first time at which a rule admits a claim
//	room        how many permits a rule would admit now
//	slot        the unit by which a Redis Cluster spreads keys over its servers; each key is in one slot
//	run         several calls that Redis decides in one script
package engine
