package cmd

import (
	"os"
	"os/signal"
	"syscall"
	"time"
)

// signals is what retryx hears. Those that cancel have a channel of their own:
// Go drops what a full channel has no room for, and no number of others may
// crowd them out.
type signals struct {
	cancels <-chan os.Signal // INT, TERM, HUP, QUIT
	others  <-chan os.Signal
}

// signalRoom is how many signals of a channel may wait for the engine; more of
// them say nothing new.
const signalRoom = 64

// listen starts to receive the signals that retryx handles. A signal that was
// ignored when we were started stays ignored, here and in the child: asking for
// it would turn that off (nohup, background jobs of sh). In the terminal's own
// group the terminal stops and continues the child itself, and catching its TSTP
// would break ^Z.
func listen(shared bool) signals {
	others := []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE, syscall.SIGWINCH}
	if !shared {
		others = append(others, syscall.SIGTSTP, syscall.SIGCONT)
	}
	return signals{
		cancels: notify(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT),
		others:  notify(others...),
	}
}

// notify asks for those of the wanted signals that are not ignored.
func notify(wanted ...os.Signal) <-chan os.Signal {
	ch := make(chan os.Signal, signalRoom)
	heard := wanted[:0]
	for _, s := range wanted {
		if !signal.Ignored(s) {
			heard = append(heard, s)
		}
	}
	if len(heard) > 0 { // Notify without signals asks for all of them
		signal.Notify(ch, heard...)
	}
	return ch
}

// hearing returns a function that returns when each signal that came before its
// call has been handed on. Go does that in a goroutine of its own, which a busy
// machine may leave waiting for longer than a command takes to end by the same
// ^C. SIGIO, which nothing else here uses, is handed on after those that cancel:
// their numbers are lower.
func hearing() func() {
	var mark chan os.Signal
	return func() {
		if mark == nil {
			mark = make(chan os.Signal, 1)
			signal.Notify(mark, syscall.SIGIO)
		}
		select {
		case <-mark: // of somebody else
		default:
		}
		if syscall.Kill(os.Getpid(), syscall.SIGIO) != nil {
			return
		}
		timer := time.NewTimer(hearingLimit)
		defer timer.Stop()
		select {
		case <-mark:
		case <-timer.C:
		}
	}
}

// hearingLimit bounds the wait for a signal of our own.
const hearingLimit = 100 * time.Millisecond

// suspend stops this process until it is continued.
func suspend() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
}

// die ends this process by s, so that shells see what the child's death would
// have shown them. It returns only if that could not be done.
func die(s syscall.Signal) {
	signal.Reset(s)
	if syscall.Kill(os.Getpid(), s) != nil {
		return
	}
	<-time.NewTimer(time.Second).C // until it is delivered
}
