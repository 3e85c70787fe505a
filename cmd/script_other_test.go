//go:build !linux

package cmd_test

func pidNamespaces() bool { return false }
