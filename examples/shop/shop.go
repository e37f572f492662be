package main

import (
	"context"
	"errors"
	"strings"

	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

//go:generate go tool ratelimit

// Shop sells things. Its limits hold for all who ask together, over HTTP and gRPC.
//
//ratelimit:rule name=client key="{clientIP(ctx)}" limit=100 per=1m
type Shop interface {
	// Search returns the products whose name contains text.
	//
	//ratelimit:rule name=search key="{clientIP(ctx)}" algorithm=token-bucket limit=1 per=1s burst=5
	Search(ctx context.Context, text string) ([]Product, error)

	// Order orders a product for the user, and returns the price with shipping, in cents. An order that fails does not count.
	//
	//ratelimit:rule name=orders key="{userID(ctx)}" limit=2 per=1m refund=error message="Two orders a minute."
	Order(ctx context.Context, product string) (cents int64, err error)
}

// Carrier is asked what shipping costs. It allows 5 calls a second to all processes of the shop together: a call waits for its turn
// for up to two seconds.
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
			shipping, err := s.carrier.Shipping(ratelimit.WithoutReport(ctx), product) // its limit is not the customer's
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
