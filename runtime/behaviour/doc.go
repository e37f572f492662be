// Package behaviour holds the tests that the stores which know all rules have to pass in the same way: it has no code of its own.
//
// One table of scenarios runs against the in-process store and against a real Redis server. Random sequences of calls are compared
// with a model, a limiter that keeps the whole history and recomputes every answer from the definitions. This checks the store in
// process, in virtual time. That the script on Redis answers as the engine does is checked in runtime/redisstore/lua. Tests of faults
// seen in other systems are named TestFault_….
//
// In the random sequences no waiting call gives up: what becomes of its place is tested in runtime/internal/engine, compared with the
// script in runtime/redisstore/lua, and measured here by TestPlacesThatAreGivenUpAreUsed.
//
// Tests of one store alone (its options, its limits, its errors) stand beside that store.
package behaviour
