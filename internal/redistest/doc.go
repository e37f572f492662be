// Package redistest starts real Redis servers for tests.
//
// Every server is the test's own: it listens on a free port of 127.0.0.1, keeps its files in the test's temporary
// directory, writes nothing to disk, and is killed by its process id when the test ends. [Start] starts one server,
// [StartCluster] a cluster. Tests of faults stop, restart and pause a server with its methods.
//
// The package needs redis-server or valkey-server (version 7 or newer) on PATH and fails the test where neither is found:
// a test that is left out looks like one that passed. It is no client; what it asks of a server goes through [Server.Do],
// which knows as much of the protocol as that needs.
package redistest
