package main

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The load obeys these rules:
//
//   - Calls arrive whatever became of the calls before them, as the cron jobs of
//     many hosts do: at a fixed mean rate, independent of each other (Poisson),
//     at the same instants in every scenario.
//   - A call is a process of its own. It ended well if it exited 0.
//   - After the last arrival the calls have Grace to end. What is left then is
//     told to end and counts as failed.
//   - Nothing outlives the program: a loop without an end would go on for ever.

// load is what comes in.
type load struct {
	Rate    float64 // calls a second
	Until   time.Duration
	Grace   time.Duration
	Seed    uint64
	Timeout time.Duration // of one request
}

// errStopped says that the load was not wanted to its end.
var errStopped = errors.New("interrupted")

// A call is what became of one arrival.
type call struct {
	Start, End time.Duration // since the start of the scenario
	OK, Killed bool
}

// arrivals returns when calls start.
func (l load) arrivals() []time.Duration {
	dice := rand.New(rand.NewPCG(l.Seed, 0))
	var all []time.Duration
	for at := time.Duration(0); ; {
		at += time.Duration(dice.ExpFloat64() / l.Rate * float64(time.Second))
		if at >= l.Until {
			return all
		}
		all = append(all, at)
	}
}

// A runner runs the calls of one scenario.
type runner struct {
	load    load
	service *service
	start   time.Time
	url     string
	dir     string // the scenario's own, the working directory of its calls
	env     []string
	stop    <-chan struct{} // closed when somebody wants no more of this

	mu      sync.Mutex
	running map[int]struct{} // pids, each the leader of a group
	ending  bool
}

// calls runs argv, with the call's URL appended, at every arrival.
func (r *runner) calls(argv []string) ([]call, error) {
	arrivals := r.load.arrivals()
	all := make([]call, len(arrivals))
	failed := make(chan error, len(arrivals))
	r.begin()
	var wait sync.WaitGroup
	for i, at := range arrivals {
		if !r.sleepUntil(at) {
			break
		}
		wait.Go(func() {
			c, err := r.call(argv, i)
			all[i] = c
			if err != nil {
				failed <- err
			}
		})
	}
	r.settle(&wait)
	select {
	case <-r.stop:
		return nil, errStopped
	case err := <-failed:
		return nil, err
	default:
		return all, nil
	}
}

func (r *runner) call(argv []string, i int) (call, error) {
	c := call{Start: time.Since(r.start)}
	cmd := r.command(append(slices.Clip(argv), r.target(i))...)
	if err := cmd.Start(); err != nil {
		return c, fmt.Errorf("start call: %w", err)
	}
	pid := cmd.Process.Pid
	r.mu.Lock()
	r.running[pid] = struct{}{}
	r.mu.Unlock()
	err := cmd.Wait()
	r.mu.Lock()
	delete(r.running, pid)
	c.Killed = r.ending
	r.mu.Unlock()
	c.End, c.OK = time.Since(r.start), err == nil
	if _, failed := errors.AsType[*exec.ExitError](err); err != nil && !failed {
		return c, fmt.Errorf("wait for call: %w", err)
	}
	return c, nil
}

func (r *runner) target(i int) string { return r.url + "/" + strconv.Itoa(i) }

func (r *runner) command(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = r.dir, r.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// sleepUntil returns false if it was told to stop.
func (r *runner) sleepUntil(at time.Duration) bool {
	timer := time.NewTimer(at - time.Since(r.start))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.stop:
		return false
	}
}

// settle waits for the calls and ends those that outlive the grace.
func (r *runner) settle(wait *sync.WaitGroup) {
	done := make(chan struct{})
	go func() { wait.Wait(); close(done) }()
	r.sleepUntil(r.load.Until)
	select {
	case <-done:
		return
	case <-r.stop:
	case <-time.After(r.load.Grace):
	}
	r.signal(syscall.SIGTERM)
	select {
	case <-done:
		return
	case <-time.After(leave):
	}
	r.signal(syscall.SIGKILL)
	<-done
}

// signal sends sig to all that is left of the calls.
func (r *runner) signal(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending = true
	for pid := range r.running {
		_ = syscall.Kill(-pid, sig)
	}
}

// leave is how long a call may take to end when it was told to.
const leave = 5 * time.Second

// slots is how many jobs GNU parallel runs at once. It starts none before it has
// read as many, so that as many empty ones are sent first.
const slots = 64

// jobs feeds all calls to one GNU parallel as they arrive. It does what xargs
// would and repeats at once what failed.
func (r *runner) jobs() ([]call, error) {
	arrivals := r.load.arrivals()
	log := filepath.Join(r.dir, "joblog")
	cmd := r.command("parallel", "--will-cite", "-u", "-j", strconv.Itoa(slots), "--retries", strconv.Itoa(attempts), "--joblog", log)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("feed parallel: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start parallel: %w", err)
	}
	fmt.Fprint(in, strings.Repeat("true\n", slots))
	if err := r.started(log); err != nil {
		return nil, err
	}
	r.begin()
	all := make([]call, len(arrivals))
	for i, at := range arrivals {
		if !r.sleepUntil(at) {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			break
		}
		all[i].Start = time.Since(r.start)
		fmt.Fprintln(in, "probe", r.target(i))
	}
	_ = in.Close()
	_ = cmd.Wait() // its status is the number of failed jobs
	return all, r.readJobs(log, all)
}

// started returns when parallel has run its empty jobs: it is slow to begin, which
// is not what is measured.
func (r *runner) started(log string) error {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); {
		text, _ := os.ReadFile(log)
		if strings.Count(string(text), "\n") > slots {
			return nil
		}
		select {
		case <-r.stop:
			return errStopped
		case <-time.After(50 * time.Millisecond):
		}
	}
	return errors.New("parallel does not begin")
}

// begin starts the clock of the load and of the service.
func (r *runner) begin() {
	r.start = time.Now()
	r.service.begin(r.start)
}

// readJobs takes over how the jobs ended.
func (r *runner) readJobs(log string, all []call) error {
	file, err := os.Open(log)
	if err != nil {
		return fmt.Errorf("read job log: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		f := strings.Split(lines.Text(), "\t")
		if len(f) < 9 {
			continue
		}
		i, err := strconv.Atoi(f[8][strings.LastIndexByte(f[8], '/')+1:])
		if err != nil || i >= len(all) {
			continue // the heading, and the empty jobs
		}
		begin, err1 := strconv.ParseFloat(strings.TrimSpace(f[2]), 64)
		took, err2 := strconv.ParseFloat(strings.TrimSpace(f[3]), 64)
		if err := errors.Join(err1, err2); err != nil {
			return fmt.Errorf("read job log: %w", err)
		}
		end := time.UnixMicro(int64((begin + took) * 1e6))
		all[i].End, all[i].OK = end.Sub(r.start), f[6] == "0"
	}
	return lines.Err()
}
