// Package faults shows what becomes of the limits when servers, networks, clocks and programs fail. It starts real servers, makes
// calls under load, breaks something, and checks what the clients saw against the definitions of the algorithms.
//
//   - load.go makes the calls and writes down what each client saw: a [Book];
//   - law.go has the definitions, as bounds on what a span of time may hold: a [Law];
//   - ledger.go compares a book with a law: nobody got too much, and nobody was refused without reason;
//   - the tests break things.
//
// The package knows nothing of how a limiter decides: neither its keys, nor its script, nor package engine. The tests that take
// more than a minute in all, or need more than redis-server, are built with the tag faults: run them by "make faults".
package faults
