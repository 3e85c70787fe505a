package main

import (
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// The service obeys these rules:
//
//   - It serves requests one after another, in the order of their arrival, at a
//     fixed rate: a queue before a worker.
//   - A request that would wait longer than Queue is turned away at once (503).
//   - It does not notice that a client has hung up: what is in the queue is worked
//     off, as most servers do. That is what lets an overload outlive its cause.
//   - While it is down it answers 503 at once, as a proxy does whose backend died,
//     so that every attempt can be counted.
//   - Every request is counted when it arrives.

// plan says when the service is well, in time since the start.
type plan struct {
	Down, Up time.Duration // it is down in between
	Healthy  float64       // requests a second before the outage
	Capacity float64       // requests a second after it
	Queue    time.Duration // the longest wait that it accepts
}

func (p plan) down(at time.Duration) bool { return at >= p.Down && at < p.Up }

func (p plan) rate(at time.Duration) float64 {
	if at < p.Up {
		return p.Healthy
	}
	return p.Capacity
}

// A request is what the service saw of one attempt.
type request struct {
	At   time.Duration
	Call string
}

type service struct {
	plan plan

	mu       sync.Mutex // guards what follows
	start    time.Time
	requests []request
	free     time.Duration // when the worker will have done all that is queued
}

// begin says when the plan starts.
func (s *service) begin(at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.start = at
}

// arrive is admit now; it returns how long the answer takes.
func (s *service) arrive(call string) (wait time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := time.Since(s.start)
	ready, ok := s.admit(at, call)
	return ready - at, ok
}

// admit counts a request and returns when its answer is ready, or false if it is
// turned away. The caller holds the lock.
func (s *service) admit(at time.Duration, call string) (ready time.Duration, ok bool) {
	s.requests = append(s.requests, request{at, call})
	if s.plan.down(at) {
		s.free = s.plan.Up
		return 0, false
	}
	begin := max(s.free, at)
	if begin-at > s.plan.Queue {
		return 0, false
	}
	s.free = begin + time.Duration(float64(time.Second)/s.plan.rate(at))
	return s.free, true
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	wait, ok := s.arrive(strings.TrimPrefix(r.URL.Path, "/"))
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		w.WriteHeader(http.StatusOK)
	case <-r.Context().Done(): // the client is gone; its work is not
	}
}

// seen returns every request so far.
func (s *service) seen() []request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]request(nil), s.requests...)
}

// serve starts the service on a port of the loopback and returns its URL.
func (s *service) serve() (url string, stop func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: s, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { defer close(done); _ = server.Serve(l) }()
	return "http://" + l.Addr().String(), func() { _ = server.Close(); <-done }, nil
}
