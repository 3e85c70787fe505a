package cmd_test

import (
	"os"
	"syscall"
)

// pidNamespaces reports whether this user may make a pid namespace, as
// unshare --user --pid --map-root-user does.
func pidNamespaces() bool {
	attr := &os.ProcAttr{Sys: &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}}
	p, err := os.StartProcess("/bin/true", []string{"true"}, attr)
	if err != nil {
		return false
	}
	state, err := p.Wait()
	return err == nil && state.Success()
}
