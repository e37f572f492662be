// Package decide is the machinery between a call and the store that counts it.
//
// A plan (plan.go) says what a method, or one rule of a request, asks of one limiter as long as nothing changes. A call (call.go) is one decision by
// such plans, with a claim for each rule (claim.go). A step (step.go) is what a decision or a change asks of those who have the counts. These files have what only some calls need, their stations:
//
//	settings.go   settings of single keys, and the limiter's own overrides
//	subject.go    subjects that are hashed
//	wait.go       calls that wait, and line.go: in which order
//	reserve.go    calls that take a place and do not wait for it
//	pause.go      calls that a pause holds
//	unlimited.go  calls that a rule does not limit
//	policy.go     calls that the store fails to decide
//	charge.go     charges that are settled or given back
//	add.go        calls that run and ask for more permits
//	statistic.go  sums of what was decided
//	used.go       which rules are in use
//
// It knows no type that programs see. Package ratelimit has those: it delegates to this package, and gives each limiter what only that package can
// make (see Options). It does not count: stores do.
package decide
