// Command registry is a package registry on the loopback that misbehaves on
// demand. It prints its address and serves until it is killed.
//
//	POST /packages/NAME   keeps the package; 409 when there is one already
//	GET  /packages/NAME   200 or 404
//	GET  /posts           how many POSTs there were
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// registry keeps the names of packages, and what it still has to get wrong.
type registry struct {
	mu    sync.Mutex
	names map[string]bool
	posts int
	lose  int // answers to lose after the package was kept
	busy  int // posts to refuse before it is
	blind bool
}

func main() {
	r := &registry{names: map[string]bool{}}
	flag.IntVar(&r.lose, "lose", 0, "keep this many packages and lose the answer")
	flag.IntVar(&r.busy, "busy", 0, "answer this many posts with 503 and keep nothing")
	flag.BoolVar(&r.blind, "blind", false, "answer no question about packages")
	flag.Parse()
	if err := r.serve(); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

func (r *registry) serve() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintf(os.Stdout, "http://%s\n", l.Addr())
	mux := http.NewServeMux()
	mux.HandleFunc("POST /packages/{name}", r.post)
	mux.HandleFunc("GET /packages/{name}", r.get)
	mux.HandleFunc("GET /posts", func(w http.ResponseWriter, _ *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		fmt.Fprintln(w, r.posts)
	})
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return s.Serve(l)
}

func (r *registry) post(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.posts++
	name := req.PathValue("name")
	switch {
	case r.busy > 0:
		r.busy--
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.names[name]:
		w.WriteHeader(http.StatusConflict)
	case r.lose > 0:
		r.lose--
		r.names[name] = true
		panic(http.ErrAbortHandler) // the connection breaks, and no answer comes
	default:
		r.names[name] = true
		w.WriteHeader(http.StatusCreated)
	}
}

func (r *registry) get(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.blind:
		w.WriteHeader(http.StatusInternalServerError)
	case !r.names[req.PathValue("name")]:
		w.WriteHeader(http.StatusNotFound)
	}
}
