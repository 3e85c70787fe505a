package proc

import "golang.org/x/sys/unix"

// The states of a process in sys/proc.h.
const (
	stateStopped = 4
	stateZombie  = 5
)

// stopped reports whether our child is stopped.
func stopped(pid int) bool {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	return err == nil && info.Proc.P_stat == stateStopped
}

// living returns the members of a group that are no zombies. If the system does
// not say, the answer is the number of the group itself.
func living(pgid int) []int {
	members, err := unix.SysctlKinfoProcSlice("kern.proc.pgrp", pgid)
	if err != nil {
		return []int{pgid}
	}
	var list []int
	for i := range members {
		if member := &members[i].Proc; member.P_stat != stateZombie {
			list = append(list, int(member.P_pid))
		}
	}
	return list
}
