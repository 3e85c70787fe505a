package cmd

import (
	"os"
	"path/filepath"
	"strings"
)

// anchored returns a variable ("NAME=value") as a command is to find it: one of
// ours that holds a path means the same file below a cd as here, so its paths are
// absolute. Others are returned as they are.
func anchored(kv string) string {
	name, value, _ := strings.Cut(kv, "=")
	switch name {
	case "RETRYX_CONFIG", "RETRYX_REDIS_PASSWORD_FILE", "RETRYX_REDIS_CA_FILE", "RETRYX_REDIS_CERT_FILE", "RETRYX_REDIS_KEY_FILE":
		return name + "=" + absolute(value)
	case "RETRYX_RULES":
		files := strings.Split(value, "\n")
		for i := range files {
			files[i] = absolute(files[i])
		}
		return name + "=" + strings.Join(files, "\n")
	case "RETRYX_OUTCOME":
		if kind, _ := parseDestination(value); kind == toFile {
			return name + "=" + absolute(value)
		}
	}
	return kv
}

// absolute is a path from the root; without a working directory, and where there
// is nothing, it is as it was. Its ".." stay, as what is before them may be a
// symlink.
func absolute(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	dir, err := os.Getwd()
	if err != nil {
		return path
	}
	return dir + "/" + path
}
