package cmd

import "strings"

// assignment is the secret of an argument NAME=VALUE, which may stand behind
// --FLAG=, and of /NAME:VALUE, a flag in Windows. Unlike in a text nothing ends
// the value but the next name.
func (r *redactor) assignment(arg string, spoken *vocabulary) []span {
	if n := windowsFlag(arg); n > 0 {
		return []span{{n, len(arg)}}
	}
	from := 0
	for range 2 {
		name, value, ok := strings.Cut(arg[from:], "=")
		if !ok || name == "" || strings.ContainsAny(name, " \"'`{&;,?\n") {
			return nil
		}
		at := from + len(name) + 1
		if value != "" && r.holdsSecret(name, spoken) && isSecretValue(name, value) {
			if len(pairs(arg[from:])) > 1 {
				return nil
			}
			return []span{{at, len(arg)}}
		}
		from = at
	}
	return nil
}

// windowsFlag returns where in /password:VALUE the value begins, 0 if it is no
// such flag, as in docker's -v /secret:/secret.
func windowsFlag(arg string) int {
	name, value, ok := strings.Cut(arg, ":")
	if !ok || value == "" || value[0] == '/' || strings.LastIndexByte(name, '/') != 0 || !isSecretKey(name) {
		return 0
	}
	return len(name) + 1
}

// holdsSecret reports whether what is assigned to a setting, a variable or a flag
// of that name may be a secret.
func (r *redactor) holdsSecret(name string, spoken *vocabulary) bool {
	switch {
	case isSecretKey(name), name == "_auth", strings.EqualFold(name, "authorization"):
		return true
	case name[0] == '-':
		return r.isSecretFlag(name, spoken)
	}
	return isVariable(name) && isSecretName(name) && !isExcepted(name)
}

// isSecretValue reports whether this value of such a name is one, which is not
// certain of variables.
func isSecretValue(name, value string) bool {
	switch {
	case isDirectory(name):
		return value[0] != '/'
	case isVariable(name) && !isSecretKey(name), name == "_auth":
		return len(value) >= shortestSecret && !isPath(value)
	}
	return true
}
