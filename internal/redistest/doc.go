// Package redistest starts real Redis servers for tests.
//
// Every server belongs to one test: it listens on a free port of 127.0.0.1, keeps its files in the test's temporary directory,
// does not save its data to disk, and is killed by its process id when the test ends. [Start] starts one server, and
// [StartCluster] a cluster. Tests of faults stop, restart and pause a server with its methods.
//
// The package needs redis-server or valkey-server, version 7 or newer, on PATH. It fails the test if there is neither, because a
// skipped test would look like one that passed. The package is not a client: [Server.Do] sends single commands only.
package redistest
