package proc

// ForgetPidfd makes p signal its group by number, as on a system without group
// signals by pidfd.
func (p *Process) ForgetPidfd() {
	p.mu.Lock()
	defer p.mu.Unlock()
	closePidfd(p.pidfd)
	p.pidfd = -1
}

// ForegroundTerminal returns what SaveTerminal does in the foreground, with
// modes that differ from all others.
func ForegroundTerminal() *Terminal { return &Terminal{} }
