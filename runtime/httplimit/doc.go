// Package httplimit answers HTTP requests that rate limits refuse, and tells clients what they have left. It does both as the standards say.
//
//   - [Error] answers an error of the runtime: a status, Retry-After, and a problem in JSON (RFC 9457).
//   - [SetHeaders] and [Status] are for programs that write a body of their own.
//   - [Report] adds the RateLimit fields to responses of services whose limits are decided somewhere below.
//   - [Middleware] limits a handler by rules, without any directive.
//   - [ClientIP] finds the address of the client that sent a request, even behind proxies.
//
// The fields RateLimit-Policy and RateLimit, and the problem type quota-exceeded, are those of the IETF draft "RateLimit header
// fields for HTTP", draft-ietf-httpapi-ratelimit-headers-11, of May 2026. A later revision may call the parameters r and t a and w. Responses
// contain the names and numbers of rules, but never keys or methods. A rule without a name is called rule-1, rule-2 and so on.
//
// The package is not for authentication: it never finds out who a user is.
package httplimit
