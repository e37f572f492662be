package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
)

// farSide is the model: its answer is the prompt in capitals. It adds up what it has seen of each user.
type farSide struct {
	mu   sync.Mutex
	seen map[string]seen
}

type seen struct{ requests, input, output int64 }

func (f *farSide) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked chat
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || len(asked.Messages) == 0 {
		http.Error(w, "expected messages", http.StatusBadRequest)
		return
	}
	words := strings.Fields(asked.Messages[0].Content)
	answer := words[:min(len(words), cmp.Or(asked.MaxTokens, len(words)))]
	f.add(asked.User, seen{1, int64(len(words)), int64(len(answer))})

	w.Header().Set("Content-Type", "text/event-stream")
	for _, word := range answer {
		send(w, chunk{Choices: []choice{{message{Content: strings.ToUpper(word) + " "}}}})
	}
	send(w, chunk{Choices: []choice{}, Usage: &Usage{int64(len(words)), int64(len(answer))}})
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func send(w http.ResponseWriter, c chunk) {
	text, _ := json.Marshal(c) // cannot fail
	fmt.Fprintf(w, "data: %s\n\n", text)
}

func (f *farSide) add(user string, s seen) {
	f.mu.Lock()
	defer f.mu.Unlock()
	sum := f.seen[user]
	f.seen[user] = seen{sum.requests + s.requests, sum.input + s.input, sum.output + s.output}
}

// of returns what the model has seen of a user.
func (f *farSide) of(user string) seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[user]
}
