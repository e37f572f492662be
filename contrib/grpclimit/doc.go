// Package grpclimit carries refusals of rate limits over gRPC: interceptors of servers turn the errors of limited services into
// statuses, and interceptors of clients turn these statuses back into the typed errors.
//
//	server := grpc.NewServer(
//		grpc.UnaryInterceptor(grpclimit.UnaryServerInterceptor()),
//		grpc.StreamInterceptor(grpclimit.StreamServerInterceptor()))
//	healthpb.RegisterHealthServer(server, NewLimitedHealthServer(service, limiter))
//
//	*ratelimit.TooManyRequestsError  ResourceExhausted, with RetryInfo and QuotaFailure
//	*ratelimit.NeverAdmissibleError  FailedPrecondition
//	*ratelimit.KeyError              InvalidArgument
//	*ratelimit.StoreError            Unavailable
//	*ratelimit.RuleError             Internal
//
// Interceptors of servers also say for clientIP(ctx) and userID(ctx) in directives who calls. Statuses name rules and their numbers.
// They never contain keys or methods: a rule without a name is called rule-1, rule-2 and so on.
//
// The package is not for authentication: it asks a function of yours who the user is.
package grpclimit
