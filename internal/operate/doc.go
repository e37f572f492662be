// Package operate is what those who run limiters see and do, as data: which rules are in force, what a key has used and what refuses it, which
// processes run, what is wrong, and every change with its check. The command ratelimitctl prints it, and package console shows it: neither
// computes anything of its own.
//
// A [Prefix] reads what the processes of a prefix know, by package fleet, and the counts, by the store. It works on every store, also on one
// in this process. It is not for decisions, and not for what only a server's own user can see to: permissions are in command ratelimitctl.
package operate
