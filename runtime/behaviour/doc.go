// Package behaviour has tests that all stores must pass. It has no code of its own.
//
// The same scenarios run against the store in memory and against a real Redis server, where functions or EVALSHA run the script. Laws of waiting run
// in virtual time on all of them: see inVirtualTime. The laws of fixed and calendar windows for which no call waits also run on the store without
// scripts. Random sequences of calls are compared with a model: a
// limiter that keeps the whole history and computes every answer from the definitions of the algorithms. This comparison runs on the store in
// memory, in virtual time. The tests in runtime/redisstore/lua compare the script on Redis with the engine. Tests whose names begin with
// TestFault_ are for faults that other systems have had.
//
// In the random sequences no waiting call gives up. Other tests do that: internal/engine tests what happens to places that are given up,
// runtime/redisstore/lua compares the script in such cases, and TestPlacesThatAreGivenUpAreUsed measures it here.
//
// Tests of a single store (its options, its limits, its errors) are in the package of that store.
package behaviour
