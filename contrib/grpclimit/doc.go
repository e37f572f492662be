// Package grpclimit carries refusals of rate limits over gRPC. Server interceptors turn the errors of limited services into statuses, and client
// interceptors turn these statuses back into typed errors.
//
//	server := grpc.NewServer(
//		grpc.UnaryInterceptor(grpclimit.UnaryServerInterceptor()),
//		grpc.StreamInterceptor(grpclimit.StreamServerInterceptor()))
//	healthpb.RegisterHealthServer(server, NewLimitedHealthServer(service, limiter))
//
//	*ratelimit.TooManyRequestsError  ResourceExhausted, with RetryInfo and QuotaFailure
//	*ratelimit.NeverAdmissibleError  FailedPrecondition
//	*ratelimit.KeyError              InvalidArgument, or Internal as the error says
//	*ratelimit.StoreError            Unavailable
//	*ratelimit.RuleError             Internal
//
// Server interceptors also set the values of clientIP(ctx) and userID(ctx) in directives. Statuses contain the names and numbers of rules, but
// never keys or methods. A rule without a name is called rule-1, rule-2 and so on.
//
// [WithRules] and [WithMessageRules] limit a server without directives: its calls, and the messages of its streams.
//
// A client interceptor with [WithLimits] keeps the limits of a far side: its calls wait for permits, and hold in all programs while the far side
// asks for quiet.
//
// The package is not for authentication: it asks a function of yours who the user is.
package grpclimit
