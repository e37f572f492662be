package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// board is the part of a dashboard that is drawn.
type board struct {
	Title  string
	Panels []panel
}

type panel struct {
	Title       string
	FieldConfig struct{ Defaults struct{ Unit string } }
	Targets     []struct{ Expr, LegendFormat string }
}

func readBoard(file string) (*board, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	b := new(board)
	if err := json.Unmarshal(text, b); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return b, nil
}

// series is a line of a panel.
type series struct {
	name   string
	points []sample
}

// sample is a value at a time since the start.
type sample struct {
	after time.Duration
	value float64
}

// variables replaces the variables in queries, as Grafana does.
var variables = strings.NewReplacer("$job", "shop", "$rule", ".*", "$__rate_interval", "10s")

// ask queries the series of each panel.
func (b *board) ask(ctx context.Context, prometheus string, from, to time.Time) ([][]series, error) {
	answers := make([][]series, len(b.Panels))
	for i, p := range b.Panels {
		for _, target := range p.Targets {
			found, err := query(ctx, prometheus, variables.Replace(target.Expr), from, to)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.Title, err)
			}
			for _, r := range found {
				answers[i] = append(answers[i], series{legend(target.LegendFormat, r.Metric), r.samples(from)})
			}
		}
	}
	return answers, nil
}

// placeholder is a label in a format.
var placeholder = regexp.MustCompile(`{{(\w+)}}`)

// legend puts labels into a format such as "{{rule}} p50".
func legend(format string, labels map[string]string) string {
	return strings.TrimSpace(placeholder.ReplaceAllStringFunc(format, func(label string) string { return labels[strings.Trim(label, "{}")] }))
}

// result is a series as Prometheus returns it.
type result struct {
	Metric map[string]string
	Values [][2]json.RawMessage // seconds since 1970, and a number as a string
}

func query(ctx context.Context, prometheus, expr string, from, to time.Time) ([]result, error) {
	form := url.Values{"query": {expr}, "start": {seconds(from)}, "end": {seconds(to)}, "step": {"1s"}}
	request, err := http.NewRequestWithContext(ctx, "GET", prometheus+"/api/v1/query_range?"+form.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	var answer struct {
		Error string
		Data  struct{ Result []result }
	}
	if err := json.NewDecoder(reply.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Error != "" {
		return nil, fmt.Errorf("%s: %s", expr, answer.Error)
	}
	return answer.Data.Result, nil
}

func seconds(t time.Time) string { return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64) }

// samples returns the samples of a result without NaN and infinite values.
func (r result) samples(from time.Time) []sample {
	var all []sample
	for _, v := range r.Values {
		var at, value float64
		if json.Unmarshal(v[0], &at) != nil {
			continue
		}
		text := strings.Trim(string(v[1]), `"`)
		value, err := strconv.ParseFloat(text, 64)
		if err != nil || value-value != 0 {
			continue
		}
		all = append(all, sample{time.Duration((at - float64(from.UnixMilli())/1000) * float64(time.Second)), value})
	}
	return all
}
