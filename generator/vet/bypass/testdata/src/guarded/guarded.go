package guarded

import (
	"errors"
	"strings"
)

var users interface{ Known(string) bool }

// Service has a guard.
//
//ratelimit:guard name=Gate
type Service struct {
	gate  *Gate
	known map[string]bool
}

// First checks its parameters before.
func (s *Service) First(email string) error {
	const most = 100
	domain := email[1:]
	lengths := []int{len(email), int(most)}
	if strings.TrimSpace(email) == "" || len(domain) > lengths[1] {
		return errors.New("no address of " + domain)
	}
	if i := strings.Index(email, "@"); i < 0 {
		return errors.New("no address")
	}
	if err := s.gate.First(email); err != nil {
		return err
	}
	return nil
}

// Second works before.
func (s *Service) Second(email string) error { // want "Second does not begin with a call of its guard, so its limits come too late or never"
	email = strings.ToLower(email)
	if err := s.gate.Second(email); err != nil {
		return err
	}
	return nil
}

// Third calls the guard of another method.
func (s *Service) Third(email string) error {
	return s.gate.Second(email) // want "Third calls the guard's method Second; expected Third"
}

// Fourth looks at more than its parameters.
func (s Service) Fourth(email string) error { // want "Fourth does not begin"
	if s.known[email] {
		return nil
	}
	return s.gate.Fourth(email)
}

// Fifth looks at more than its parameters.
func (s Service) Fifth(email string) error { // want "Fifth does not begin"
	if users.Known(email) {
		return nil
	}
	return s.gate.Fifth(email)
}

// Sixth calls its guard sometimes.
func (s Service) Sixth(email string) error { // want "Sixth does not begin"
	if email != "root" {
		return s.gate.Sixth(email)
	}
	return nil
}

func (s Service) Meant(email string) error { return nil } //ratelimit:bare it is being removed

// None drops the error.
func (s Service) None(email string) {
	s.gate.None(email) // want "the error of the guard is dropped, so None refuses no calls"
}

// Free has no limits.
func (s Service) Free(email string) error { return nil }

// Ask is as it should be.
func (s *Service) Ask(n int) (answer string, err error) {
	done, err := s.gate.Ask(n)
	if err != nil {
		return "", err
	}
	defer done(&answer, &err)
	return "", nil
}

// Local passes pointers to other variables.
func (s *Service) Local(n int) (string, error) {
	done, err := s.gate.Local(n)
	if err != nil {
		return "", err
	}
	answer := ""
	defer done(&answer, &err) // want "this is no pointer to result 1 of Local" "this is no pointer to result 2 of Local"
	return "", nil
}

// Late does not defer.
func (s *Service) Late(n int) (answer string, err error) {
	done, err := s.gate.Late(n)
	if err != nil {
		return "", err
	}
	answer = "late"
	done(&answer, &err) // want "defer done itself"
	return answer, nil
}

// Drop drops both results.
func (s *Service) Drop(n int) (answer string, err error) {
	_, _ = s.gate.Drop(n) // want "the func of the guard is dropped; defer it" "the error of the guard is dropped"
	return "", nil
}

// Func defers another func.
func (s *Service) Func(n int) (answer string, err error) {
	done, err := s.gate.Func(n)
	if err != nil {
		return "", err
	}
	defer func() { done(&answer, &err) }() // want "defer done itself"
	return "", nil
}

// Other is over when a goroutine is.
func (s *Service) Other(n int) (answer string, err error) {
	done, err := s.gate.Other(n)
	if err != nil {
		return "", err
	}
	go func() { done(&answer, &err) }()
	return "", nil
}

// Slow may return before it defers.
func (s *Service) Slow(n int) (answer string, err error) {
	done, err := s.gate.Slow(n)
	if err != nil {
		return "", err
	}
	if answer, err = prepare(n); err != nil {
		return "", err
	}
	defer done(&answer, &err) // want "done is deferred too late"
	return answer, nil
}

func prepare(n int) (string, error) { return "", nil }
