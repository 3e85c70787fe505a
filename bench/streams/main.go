// Streams measures what retryx adds to output: a gigabyte on stdout, which it
// hands through, a gigabyte on stderr, which it reads and passes on, its memory
// while it does, and how long the first byte and every single byte take.
//
// The same child runs bare and under retryx, one right after the other in every
// round. Three ratios are printed: that of the best times, by which a target is met
// or missed, as whatever else the machine does only ever adds, and the median of
// the rounds' own ratios; and that of the processor time, which a busy machine
// hardly changes.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retryx/retryx/bench/internal/sample"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "child" {
		child(os.Args[2:])
		return
	}
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "streams:", err)
		os.Exit(1)
	}
}

// child is what runs bare and under retryx.
//
//	child write FD BYTES BLOCK   writes lines of 100 bytes, BLOCK bytes at a time
//	child echo FD                answers every byte of stdin with one
func child(args []string) {
	fd, err := strconv.Atoi(args[1])
	if err != nil {
		os.Exit(2)
	}
	out := os.NewFile(uintptr(fd), "out")
	switch args[0] {
	case "write":
		size, _ := strconv.Atoi(args[2])
		block, _ := strconv.Atoi(args[3])
		line := append(bytes.Repeat([]byte("x"), 99), '\n')
		text := bytes.Repeat(line, max(block/len(line), 1))
		for size > 0 {
			n := min(size, len(text))
			if _, err := out.Write(text[:n]); err != nil {
				os.Exit(1)
			}
			size -= n
		}
	case "echo":
		var b [1]byte
		for {
			if _, err := os.Stdin.Read(b[:]); err != nil {
				return
			}
			if _, err := out.Write(b[:]); err != nil {
				os.Exit(1)
			}
		}
	}
}

// A bench is where and how often things are measured.
type bench struct {
	self   string
	retryx string
	dir    string
	rounds int
	size   int
	w      io.Writer
	missed []string
}

func run(args []string, w io.Writer) error {
	flags := flag.NewFlagSet("streams", flag.ContinueOnError)
	rounds := flags.Int("rounds", 5, "pairs of each measurement")
	size := flags.Int("size", 1<<30, "bytes of a long stream")
	bytes := flags.Int("bytes", 2000, "single bytes to be answered")
	dir := flags.String("dir", os.TempDir(), "a directory for the files that are written")
	strict := flags.Bool("strict", false, "fail if a target is missed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	self, err := sample.Self()
	if err != nil {
		return err
	}
	retryx, err := exec.LookPath("retryx")
	if err != nil {
		return err
	}
	b := &bench{self: self, retryx: retryx, dir: *dir, rounds: *rounds, size: *size, w: w}
	for _, step := range []func() error{b.throughput, b.memory, func() error { return b.latency(*bytes) }} {
		if err := step(); err != nil {
			return err
		}
	}
	if *strict && len(b.missed) > 0 {
		return fmt.Errorf("missed: %s", strings.Join(b.missed, "; "))
	}
	return nil
}

// writes is the argv of a child that writes.
func (b *bench) writes(fd, size, block int) []string {
	return []string{b.self, "child", "write", strconv.Itoa(fd), strconv.Itoa(size), strconv.Itoa(block)}
}

// under puts retryx before argv: as it is by default, but for its outcome, which
// would be the last line of what is measured.
func (b *bench) under(argv []string, flags ...string) []string {
	return slices.Concat([]string{b.retryx, "--outcome", "none"}, flags, []string{"--"}, argv)
}

// A transfer is one way for bytes to get somewhere.
type transfer func() (sample.Run, error)

// row measures two transfers in turn and prints the ratio; limit 0 is no target.
func (b *bench) row(name string, with, without transfer, limit float64) error {
	var a, c, cpuA, cpuC sample.Series
	for i := range b.rounds {
		order := []struct {
			wall, cpu *sample.Series
			do        transfer
		}{{&a, &cpuA, with}, {&c, &cpuC, without}}
		if i%2 == 1 {
			slices.Reverse(order)
		}
		for _, o := range order {
			r, err := o.do()
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			*o.wall, *o.cpu = append(*o.wall, r.Wall), append(*o.cpu, r.CPU)
		}
	}
	ratios := sample.Ratios(a, c)
	best := float64(a.At(0)) / float64(c.At(0))
	verdict := ""
	if limit > 0 {
		verdict = fmt.Sprintf("target %.2f  %s", limit, sample.Mark(best <= limit))
		if best > limit {
			b.missed = append(b.missed, name)
		}
	}
	fmt.Fprintf(b.w, "%-42s %7.3fs %7.3fs  %6.3f  %6.3f  %9.3f  %s\n",
		name, a.At(0).Seconds(), c.At(0).Seconds(), best, ratios[len(ratios)/2], float64(cpuA.At(0))/float64(cpuC.At(0)), verdict)
	return nil
}

func (b *bench) throughput() error {
	fmt.Fprintf(b.w, "%-42s %8s %8s  %6s  %6s  %9s\n", fmt.Sprintf("%s, best of %d rounds", sample.MiB(int64(b.size)), b.rounds), "retryx", "without", "ratio", "median", "processor")
	const block = 64 << 10
	out, err := b.writes(1, b.size, block), b.writes(2, b.size, block)
	lines := b.writes(2, b.size/16, 100)
	rows := []struct {
		name          string
		with, without transfer
		limit         float64
	}{
		{"stdout to a pipe, bare", b.drained(1, b.under(out)), b.drained(1, out), 1.02},
		{"stdout to a file, bare", b.filed(1, b.under(out)), b.filed(1, out), 1.02},
		{"stderr to a file, cat on the same pipe", b.filed(2, b.under(err)), b.catFiled(err), 1.5},
		{"stderr to a pipe, cat on the same pipe", b.drained(2, b.under(err)), b.catDrained(err), 0},
		{"stderr to a file, bare", b.filed(2, b.under(err)), b.filed(2, err), 0},
		{"stderr to a file, not captured, bare", b.filed(2, b.under(err, "--capture", "none")), b.filed(2, err), 1.02},
		{"1/16 of it, line by line to a file, cat", b.filed(2, b.under(lines)), b.catFiled(lines), 0},
	}
	for _, r := range rows {
		if err := b.row(r.name, r.with, r.without, r.limit); err != nil {
			return err
		}
	}
	return nil
}

// drained runs argv with its descriptor on a pipe that is read to its end by cat.
func (b *bench) drained(fd int, argv []string) transfer {
	return func() (sample.Run, error) { return b.piped(fd, argv, os.DevNull) }
}

// filed runs argv with its descriptor on a new file.
func (b *bench) filed(fd int, argv []string) transfer {
	return func() (sample.Run, error) {
		return b.withFile(func(file *os.File) (sample.Run, error) {
			cmd := exec.Command(argv[0], argv[1:]...)
			b.attach(cmd, fd, file)
			r := sample.Measure(cmd)
			return r, r.Err
		})
	}
}

// catFiled runs argv with its stderr on a pipe that cat copies into a new file:
// the least that somebody must do who wants to see the bytes on their way.
func (b *bench) catFiled(argv []string) transfer {
	return func() (sample.Run, error) {
		return b.withFile(func(file *os.File) (sample.Run, error) { return b.piped(2, argv, file.Name()) })
	}
}

// catDrained is catFiled with one more cat in the place of the file.
func (b *bench) catDrained(argv []string) transfer {
	return func() (sample.Run, error) { return b.shell(`"$@" 2>&1 >/dev/null | cat | cat >/dev/null`, argv) }
}

func (b *bench) piped(fd int, argv []string, to string) (sample.Run, error) {
	script := `"$@" 2>/dev/null | cat >` + to
	if fd == 2 {
		script = `"$@" 2>&1 >/dev/null | cat >` + to
	}
	return b.shell(script, argv)
}

func (b *bench) shell(script string, argv []string) (sample.Run, error) {
	r := sample.Measure(exec.Command("sh", append([]string{"-c", script, "sh"}, argv...)...))
	return r, r.Err
}

func (b *bench) withFile(do func(*os.File) (sample.Run, error)) (sample.Run, error) {
	file, err := os.CreateTemp(b.dir, "out")
	if err != nil {
		return sample.Run{}, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	r, err := do(file)
	if err != nil {
		return r, err
	}
	info, err := os.Stat(file.Name())
	if err == nil && info.Size() == 0 {
		err = fmt.Errorf("nothing arrived in %s", filepath.Base(file.Name()))
	}
	return r, err
}

func (b *bench) attach(cmd *exec.Cmd, fd int, file *os.File) {
	if fd == 1 {
		cmd.Stdout = file
		return
	}
	cmd.Stderr = file
}

// memory prints the peak of retryx itself for streams of three lengths.
func (b *bench) memory() error {
	fmt.Fprintln(b.w, "\npeak memory of retryx by length of the stream")
	rows := []struct {
		name  string
		fd    int
		flags []string
	}{
		{"stdout", 1, nil},
		{"stderr", 2, nil},
		{"stdout, captured", 1, []string{"--capture", "both"}},
		{"stdout, --stdout commit", 1, []string{"--stdout", "commit"}},
	}
	for _, r := range rows {
		var peaks []int64
		fmt.Fprintf(b.w, "%-28s", r.name)
		for _, size := range []int{1 << 20, 64 << 20, b.size} {
			done, err := b.filed(r.fd, b.under(b.writes(r.fd, size, 64<<10), r.flags...))()
			if err != nil {
				return err
			}
			peaks = append(peaks, done.Peak)
			fmt.Fprintf(b.w, "  %s: %s", sample.MiB(int64(size)), sample.MiB(done.Peak))
		}
		flat := peaks[2] <= peaks[0]+2<<20
		fmt.Fprintf(b.w, "  flat: %s\n", sample.Mark(flat))
		if !flat {
			b.missed = append(b.missed, "memory of "+r.name)
		}
	}
	return nil
}

// latency prints how long the first byte takes, and a byte of a running child.
func (b *bench) latency(n int) error {
	fmt.Fprintln(b.w, "\nlatency of a byte")
	rows := []struct {
		name string
		argv func(fd int) []string
		fd   int
	}{
		{"stdout, bare", b.echo, 1},
		{"stdout", func(fd int) []string { return b.under(b.echo(fd)) }, 1},
		{"stderr, bare", b.echo, 2},
		{"stderr", func(fd int) []string { return b.under(b.echo(fd)) }, 2},
	}
	first, trips := make([]sample.Series, len(rows)), make([]sample.Series, len(rows))
	const starts = 50
	for range starts {
		for i, r := range rows {
			begin, took, err := b.talk(r.argv(r.fd), r.fd, n/starts)
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			first[i] = append(first[i], begin)
			trips[i] = append(trips[i], took...)
		}
	}
	for i, r := range rows {
		fmt.Fprintf(b.w, "%-16s start to first byte: p50 %s p99 %s   round trip: p50 %.1f us p99 %.1f us\n", r.name,
			sample.MS(first[i].Median()), sample.MS(first[i].At(0.99)),
			float64(trips[i].Median())/1e3, float64(trips[i].At(0.99))/1e3)
	}
	return nil
}

func (b *bench) echo(fd int) []string { return []string{b.self, "child", "echo", strconv.Itoa(fd)} }

// talk starts argv, sends single bytes and awaits each answer on fd.
func (b *bench) talk(argv []string, fd, n int) (first time.Duration, trips sample.Series, err error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer r.Close()
	b.attach(cmd, fd, w)
	begin := time.Now()
	err = cmd.Start()
	w.Close()
	if err != nil {
		return 0, nil, err
	}
	answer := make([]byte, 1)
	for i := range n + 1 {
		sent := time.Now()
		if _, err := in.Write([]byte{'x'}); err != nil {
			return 0, nil, err
		}
		if _, err := io.ReadFull(r, answer); err != nil {
			return 0, nil, err
		}
		if i == 0 {
			first = time.Since(begin)
			continue
		}
		trips = append(trips, time.Since(sent))
	}
	in.Close()
	return first, trips, cmd.Wait()
}
