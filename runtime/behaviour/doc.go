// Package behaviour holds the tests that the stores which know all rules have to pass in the same way: it has no code of its own.
//
// One table of scenarios runs against the in-process store and against a real Redis server, and random sequences of calls
// are compared with a model, a limiter that keeps the whole history and recomputes every answer from the definitions.
// The model knows nothing of how a store keeps its state, so that one mistake cannot be made in both places.
// Tests of faults seen in other systems are named TestFault_….
//
// Tests of one store alone (its options, its limits, its errors) stand beside that store.
package behaviour
