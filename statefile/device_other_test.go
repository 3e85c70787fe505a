//go:build !linux

package statefile_test

import "errors"

func mknod(string) error { return errors.ErrUnsupported }
