package main

import (
	"context"
	"errors"
	"slices"
	"strings"
)

//go:generate go run github.com/ratelimit-go/ratelimit/cmd/ratelimit

// Library lends books.
//
//ratelimit:wrap tz=Europe/Berlin
//ratelimit:rule name=client key="{clientIP(ctx)}" limit=300 per=1m
type Library interface {
	// Search returns the books whose title contains text.
	//
	//ratelimit:rule name=search key="{userID(ctx)}" algorithm=token-bucket limit=1 per=1s burst=5
	Search(ctx context.Context, text string) ([]Book, error)

	// Reserve keeps a copy of a book for the user.
	//
	//ratelimit:rule name=reservations-user  key="{userID(ctx)}" limit=3 cron="@daily" message="Three reservations a day."
	//ratelimit:rule name=reservations-title key="{isbn}"        limit=2 cron="@daily" message="{isbn} is in great demand today."
	Reserve(ctx context.Context, isbn string) error

	// Hours says when the library is open. Nothing limits it.
	//
	//ratelimit:skip
	Hours() string
}

// Book is one title.
type Book struct {
	ISBN  string `json:"isbn"`
	Title string `json:"title"`
}

var errUnknownBook = errors.New("no such book")

// shelf is a Library in memory.
type shelf []Book

func (s shelf) Search(_ context.Context, text string) ([]Book, error) {
	found := []Book{}
	for _, b := range s {
		if strings.Contains(strings.ToLower(b.Title), strings.ToLower(text)) {
			found = append(found, b)
		}
	}
	return found, nil
}

func (s shelf) Reserve(_ context.Context, isbn string) error {
	if !slices.ContainsFunc(s, func(b Book) bool { return b.ISBN == isbn }) {
		return errUnknownBook
	}
	return nil
}

func (shelf) Hours() string { return "9 to 18" }
