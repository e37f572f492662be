// Package health limits a real service: the health service of gRPC, which has a unary and a streaming method.
package health

import healthpb "google.golang.org/grpc/health/grpc_health_v1"

//go:generate go tool ratelimit

// HealthServer is the generated interface of the service.
//
//ratelimit:rule name=address key="{clientIP(ctx)}" limit=2 per=1h message="Twice an hour."
//ratelimit:rule key="{userID(ctx)}" limit=3 per=1h when="userID(ctx) != ''"
type HealthServer = healthpb.HealthServer
