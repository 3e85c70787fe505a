package ruleset

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// ReadDir reads every *.yaml of a directory: the generic vocabularies first,
// then the tools, each by name.
func ReadDir(dir fs.FS) ([]File, error) {
	names, err := fs.Glob(dir, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("list rules: %w", err)
	}
	var files []File
	var errs []error
	for _, name := range names {
		data, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, fmt.Errorf("read rules: %w", err)
		}
		f, err := Parse(name, data)
		if err == nil && f.Name+".yaml" != name {
			err = fmt.Errorf("%s:1: it describes %q, so it must be called %s.yaml", name, f.Name, f.Name)
		}
		files = append(files, f)
		errs = append(errs, err)
	}
	Sort(files)
	return files, errors.Join(append(errs, checkNames(files))...)
}

// Sort puts the generic vocabularies first, then the tools, each by name.
func Sort(files []File) {
	slices.SortFunc(files, func(a, b File) int {
		if a.Generic != b.Generic {
			if a.Generic {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Name, b.Name)
	})
}

// ToolName is a program's name and the index of the file that describes it.
type ToolName struct {
	Name string
	File int
}

// Names returns the names of all programs in order.
func Names(files []File) []ToolName {
	var names []ToolName
	for i, f := range files {
		for _, name := range toolNames(f) {
			names = append(names, ToolName{name, i})
		}
	}
	slices.SortFunc(names, func(a, b ToolName) int { return cmp.Compare(a.Name, b.Name) })
	return names
}

// checkNames refuses a program that two files describe.
func checkNames(files []File) error {
	owner := map[string]string{}
	var errs []error
	for _, f := range files {
		for _, name := range toolNames(f) {
			if other := owner[name]; other != "" {
				errs = append(errs, fmt.Errorf("%s.yaml: the name %q is taken by %s.yaml", f.Name, name, other))
			}
			owner[name] = f.Name
		}
	}
	return errors.Join(errs...)
}

func toolNames(f File) []string {
	if f.Generic {
		return nil
	}
	names := append([]string{f.Name}, f.Names...)
	slices.Sort(names)
	return slices.Compact(names)
}
