// Package faulttest holds nothing but tests of what budgets do between processes
// and when the system fails them. It runs stores and whole programs under a tracer
// that kills them at a system call, or makes the call fail, one call after the
// other; and it stops and kills those who hold a lock.
//
// The tracer is ptrace(2) on Linux on amd64; elsewhere only the tests without it
// run.
package faulttest
