package main

import (
	"context"
	"errors"
	"strings"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

//go:generate go tool ratelimit

// Shop sells products. Requests over HTTP and over gRPC share its limits.
//
//ratelimit:rule name=client key="{clientIP(ctx)}" limit=100 per=1m
type Shop interface {
	// Search returns the products whose name contains text.
	//
	//ratelimit:rule name=search key="{clientIP(ctx)}" algorithm=token-bucket limit=1 per=1s burst=5
	Search(ctx context.Context, text string) ([]Product, error)

	// Order orders a product for the user, and returns the price with shipping, in cents. An order that fails does
	// not count.
	//
	//ratelimit:rule name=orders key="{userID(ctx)}" limit=2 per=1m refund=error message="Two orders a minute."
	Order(ctx context.Context, product string) (cents int64, err error)
}

// Carrier knows the price of shipping. It allows 5 calls a second for all processes of the shop together. A call waits
// up to two seconds for its turn.
//
//ratelimit:rule name=carrier algorithm=leaky-bucket limit=5 per=1s wait=2s
type Carrier interface {
	Shipping(ctx context.Context, product string) (cents int64, err error)
}

// Product is what the shop sells.
type Product struct {
	Name  string `json:"name"`
	Cents int64  `json:"cents"`
}

var (
	errUnknownProduct = errors.New("there is no such product")
	errBusy           = errors.New("the carrier is busy")
)

// shop is a Shop in memory.
type shop struct {
	products []Product
	carrier  Carrier
}

func (s *shop) Search(_ context.Context, text string) ([]Product, error) {
	found := []Product{}
	for _, p := range s.products {
		if strings.Contains(p.Name, text) {
			found = append(found, p)
		}
	}
	return found, nil
}

func (s *shop) Order(ctx context.Context, product string) (int64, error) {
	for _, p := range s.products {
		if p.Name == product {
			shipping, err := s.carrier.Shipping(ratelimit.WithoutReport(ctx), product) // its limit is no concern of the customer
			if errors.Is(err, ratelimit.ErrTooManyRequests) {
				return 0, errBusy
			}
			return p.Cents + shipping, err
		}
	}
	return 0, errUnknownProduct
}

// flatRate is a Carrier. A real one would send a request.
type flatRate int64

func (f flatRate) Shipping(context.Context, string) (int64, error) { return int64(f), nil }
