package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/ratelimit-go/ratelimit/contrib/grpclimit"
	"github.com/ratelimit-go/ratelimit/examples/shop/shoppb"
	ratelimit "github.com/ratelimit-go/ratelimit/runtime"
)

// teller makes requests and prints the responses.
type teller struct {
	out io.Writer
	web string // the URL of the shop
	rpc shoppb.ShopClient
}

// demo calls the shop at its HTTP and gRPC addresses as customers would, and prints the results.
func demo(ctx context.Context, out io.Writer, web, rpc string) error {
	conn, err := grpc.NewClient(rpc, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(grpclimit.UnaryClientInterceptor()))
	if err != nil {
		return err
	}
	defer conn.Close()
	t := &teller{out, "http://" + web, shoppb.NewShopClient(conn)}
	fmt.Fprintln(out, "Ready?")
	if err := t.send(ctx, "GET", "/readyz", ""); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nFive searches at once, and then one a second.")
	for range 6 {
		if err := t.send(ctx, "GET", "/products?text=chair", ""); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "\nTwo orders a minute, over gRPC and HTTP together. The second one waits until the carrier may be asked again.")
	t.order(ctx, "ann", "lamp")
	t.order(ctx, "ann", "table lamp")
	t.order(ctx, "ann", "chair")
	if err := t.send(ctx, "POST", "/orders?product=chair", "ann"); err != nil {
		return err
	}
	fmt.Fprintln(out, "\nWhat Prometheus sees.")
	return t.metrics(ctx)
}

// send sends a request and prints the status, the remaining quota, and the body of a refusal.
func (t *teller) send(ctx context.Context, method, path, user string) error {
	reply, err := t.request(ctx, method, path, user)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	fmt.Fprintf(t.out, "%4s %-22s %s", method, path, reply.Status)
	if left := reply.Header.Get("RateLimit"); left != "" {
		fmt.Fprintf(t.out, "  RateLimit: %s", left)
	}
	fmt.Fprintln(t.out)
	if reply.StatusCode != http.StatusOK {
		fmt.Fprintf(t.out, "%5sRetry-After: %s  ", "", reply.Header.Get("Retry-After"))
		_, err = io.Copy(t.out, reply.Body)
	}
	return err
}

func (t *teller) request(ctx context.Context, method, path, user string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, t.web+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	if user != "" {
		request.Header.Set("Authorization", "Bearer "+user)
	}
	return http.DefaultClient.Do(request)
}

// order orders over gRPC. A refusal arrives as the same typed error that the shop returned.
func (t *teller) order(ctx context.Context, user, product string) {
	began := time.Now()
	ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+user)
	reply, err := t.rpc.Order(ctx, &shoppb.OrderRequest{Product: product}, grpc.WaitForReady(true))
	fmt.Fprintf(t.out, "gRPC %-22s ", "Order "+url.QueryEscape(product))
	if refusal, ok := errors.AsType[*ratelimit.TooManyRequestsError](err); ok {
		fmt.Fprintf(t.out, "refused: %s Retry after %.1fs\n", refusal.Message, refusal.RetryAfter.Seconds())
		return
	}
	if err != nil {
		fmt.Fprintln(t.out, err)
		return
	}
	fmt.Fprintf(t.out, "%d cents, after %.2fs\n", reply.GetCents(), time.Since(began).Seconds())
}

// metrics prints the decisions by rule.
func (t *teller) metrics(ctx context.Context) error {
	reply, err := t.request(ctx, "GET", "/metrics", "")
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	lines := bufio.NewScanner(reply.Body)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "ratelimit_decisions_total{") {
			fmt.Fprintln(t.out, lines.Text())
		}
	}
	return lines.Err()
}
