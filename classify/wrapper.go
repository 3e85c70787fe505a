package classify

import (
	"path"
	"slices"
	"strings"
)

// Wrappers that run the command that follows their own flags, and that change
// neither what it does nor what it says. The tool is looked for behind them.

// wrapper says how to find the inner command.
type wrapper struct {
	name    string
	after   string // the words that must follow the name: "run" of `uv run`; alternatives with |
	skip    int    // words of its own before the command: timeout's duration
	assigns bool   // VAR=value words may come first
	values  string // flags that take the next word, separated by spaces
}

//nolint:gochecknoglobals // a table that nobody writes to; the compiler lays it out
var wrappers = [...]wrapper{
	{name: "annotate-output"},
	{name: "apptainer", after: "exec", skip: 1, values: "-B --bind --env --env-file -H --home --pwd --workdir -S --scratch"},
	{name: "arch", values: ""},
	{name: "asdf", after: "exec"},
	{name: "aws-vault", after: "exec", skip: 1, values: "-d --duration --prompt"},
	{name: "bun", after: "x"},
	{name: "bundle", after: "exec|e"},
	{name: "bunx"},
	{name: "busybox"},
	{name: "caffeinate", values: "-t -w"},
	{name: "catatonit"},
	{name: "catchsegv"},
	{name: "cgexec", values: "-g"},
	{name: "chamber", after: "exec", skip: 1},
	{name: "chpst", values: "-u -U -b -d -/ -n -l -L -m -o -p -f -c -t -e"},
	{name: "chronic"},
	{name: "chroot", skip: 1},
	{name: "chrt", skip: 1, values: "-T -P -D"},
	{name: "command"},
	{name: "conda", after: "run", values: "-n --name -p --prefix --cwd"},
	{name: "corepack"},
	{name: "cpulimit", values: "-l --limit"},
	{name: "cronic"},
	{name: "cronitor", after: "exec", skip: 1, values: "-e --env"},
	{name: "dbus-run-session", values: "--config-file --dbus-daemon"},
	{name: "devbox", after: "run", values: "-c --config"},
	{name: "direnv", after: "exec", skip: 1},
	{name: "doas", values: "-u -C -a"},
	{name: "doppler", after: "run", values: "-p --project -c --config -t --token"},
	{name: "dotenv", values: "-e -f -p -c -v"},
	{name: "dotenvx", after: "run", values: "-f --env-file -e --env"},
	{name: "dumb-init", values: "-r --rewrite"},
	{name: "eatmydata"},
	{name: "env", assigns: true, values: "-u --unset -C --chdir -S --split-string"},
	{name: "envchain", skip: 1},
	{name: "envdir", skip: 1},
	{name: "exec", values: "-a"},
	{name: "fakeroot", values: "-l -s -i -b"},
	{name: "faketime", skip: 1},
	{name: "firejail"},
	{name: "flock", skip: 1, values: "-w --wait --timeout -E --conflict-exit-code"},
	{name: "fnm", after: "exec", values: "--using"},
	{name: "gosu", skip: 1},
	{name: "gtimeout", skip: 1, values: "-k --kill-after -s --signal"},
	{name: "hatch", after: "run"},
	{name: "i386"},
	{name: "infisical", after: "run", values: "--env --path --projectId --token"},
	{name: "ionice", values: "-c --class -n --classdata"},
	{name: "lckdo", skip: 1, values: "-W"},
	{name: "lerna", after: "exec", values: "--scope --concurrency"},
	{name: "linux32"},
	{name: "linux64"},
	{name: "logsave", skip: 1},
	{name: "ltrace", values: "-o -e -p -s -S -u -a -n -l -x -F -A -D"},
	{name: "micromamba", after: "run", values: "-n --name -p --prefix --cwd"},
	{name: "mise", after: "exec|x", values: "-C"},
	{name: "nice", values: "-n --adjustment"},
	{name: "nohup"},
	{name: "npm", after: "exec|x", values: "-p --package -w --workspace"},
	{name: "npx", values: "-p --package -w --workspace"},
	{name: "nsenter", values: "-t --target -S --setuid -G --setgid"},
	{name: "numactl", values: "-N -m -i -C -p --membind --cpunodebind --physcpubind --interleave"},
	{name: "nvm", after: "exec", skip: 1},
	{name: "op", after: "run", values: "--env-file --account"},
	{name: "pdm", after: "run"},
	{name: "pipenv", after: "run"},
	{name: "pipx", after: "run", values: "--spec --python"},
	{name: "pixi", after: "run", values: "-e --environment --manifest-path"},
	{name: "pkexec", values: "--user"},
	{name: "pnpm", after: "exec|dlx", values: "-C --dir --package"},
	{name: "pnpx"},
	{name: "poetry", after: "run"},
	{name: "prlimit"},
	{name: "proxychains", values: "-f"},
	{name: "proxychains4", values: "-f"},
	{name: "pyenv", after: "exec"},
	{name: "rbenv", after: "exec"},
	{name: "retry"},
	{name: "retryx", values: "-n --max-attempts --delay --max-delay --multiplier --jitter --max-retry-after --max-elapsed --deadline -t --timeout --kill-after --min-attempt --retry-on " +
		"-b --budget --budget-capacity --budget-refill --budget-bonus --run-budget --run-id --budget-store --budget-on-error --breaker-threshold --breaker-cooldown " +
		"--rule --rules --retry-exit --stop-exit --retry-stderr --stop-stderr --retry-stdout --stop-stdout --success-exit --effect --idempotency-key --outcome --outcome-on " +
		"--redact --state-dir --cancel-file --on-orphan --hook-timeout --reconcile --correct --max-corrections --before-retry --on-outcome --step --stdout --capture --pty " +
		"--stdin --color --ci --config --profile"},
	{name: "run-one"},
	{name: "runuser", values: "-u --user -g --group -G --supp-group -s --shell"},
	{name: "rustup", after: "run", skip: 1},
	{name: "rye", after: "run"},
	{name: "s6-setuidgid", skip: 1},
	{name: "setarch"},
	{name: "setlock", skip: 1},
	{name: "setpriv", values: "--reuid --regid --groups"},
	{name: "setsid"},
	{name: "setuidgid", skip: 1},
	{name: "singularity", after: "exec", skip: 1, values: "-B --bind --env --env-file -H --home --pwd --workdir -S --scratch"},
	{name: "softlimit", values: "-a -c -d -f -l -m -o -p -r -s -t"},
	{name: "ssh-agent", values: "-a -E -O -P -t"},
	{name: "sshpass", values: "-p -f -d -P"},
	{name: "stdbuf", values: "-i -o -e --input --output --error"},
	{name: "strace", values: "-o -e -p -s -S -u -E -a -O -P"},
	{name: "su-exec", skip: 1},
	{name: "sudo", assigns: true, values: "-u --user -g --group -h --host -p --prompt -C --close-from -r --role -t --type -T --command-timeout -D --chdir -R --chroot -U --other-user"},
	{name: "systemd-cat", values: "-t --identifier -p --priority --stderr-priority --level-prefix --namespace"},
	{name: "systemd-inhibit"},
	{name: "systemd-run", values: "-p --property -u --unit -E --setenv -M --machine -H --host"},
	{name: "taskset", skip: 1},
	{name: "time", values: "-f --format -o --output"},
	{name: "timeout", skip: 1, values: "-k --kill-after -s --signal"},
	{name: "tini", values: "-p -e"},
	{name: "torify"},
	{name: "torsocks"},
	{name: "trickle", values: "-d -u -w -t -l -n -L -P"},
	{name: "tsocks"},
	{name: "unbuffer"},
	{name: "unshare", values: "-S --setuid -G --setgid -R --root -w --wd"},
	{name: "uv", after: "run", values: "--with --with-requirements -p --python --project --directory --env-file --extra --group --package"},
	{name: "uvx", values: "--from --with -p --python"},
	{name: "valgrind"},
	{name: "varlock", after: "run"},
	{name: "volta", after: "run", values: "--node --npm --yarn"},
	{name: "with-contenv"},
	{name: "xcrun", values: "--sdk --toolchain"},
	{name: "xvfb-run", values: "-n --server-num -e --error-file -f --auth-file -s --server-args -p --xauth-protocol -w --wait"},
	{name: "yarn", after: "exec|dlx"},
}

// wrapped returns the command that argv wraps, nil when argv is a command in
// its own right.
func (t *tables) wrapped(argv []string) []string {
	if len(argv) < 2 {
		return nil
	}
	name := strings.TrimSuffix(path.Base(argv[0]), ".exe")
	if line := shellLineOf(argv); line != "" || shellName(name) {
		return simpleCommand(line)
	}
	if strings.HasPrefix(name, "python") || name == "pypy" || name == "pypy3" || name == "py" {
		return t.pythonModule(argv)
	}
	w := wrapperOf(name)
	if w == nil {
		return nil
	}
	args := argv[1:]
	if name == "env" {
		args = splitStrings(args, strings.Fields(w.values))
	}
	inner := w.inner(args)
	if len(inner) > 0 && (name == "npx" || name == "pnpx" || name == "bunx" || name == "uvx") {
		return unversioned(inner)
	}
	return inner
}

// wrapperOf returns what is known of a wrapper; nil when it is none.
func wrapperOf(name string) *wrapper {
	i, found := slices.BinarySearchFunc(wrappers[:], name, func(w wrapper, name string) int {
		return strings.Compare(w.name, name)
	})
	if !found {
		return nil
	}
	return &wrappers[i]
}

// splitStrings puts the words that env's -S holds in its place, as env does:
// env -S 'A=b curl -d x' URL.
func splitStrings(args, values []string) []string {
	for i := 0; i < len(args); i++ {
		arg := args[i]
		line, joined := strings.CutPrefix(arg, "--split-string=")
		at, rest := valued(arg, values), args[i+1:]
		switch {
		case joined:
		case arg == "--split-string", at == len(arg)-1 && arg[at] == 'S':
			if len(rest) == 0 {
				return args
			}
			line, rest = rest[0], rest[1:]
		case at < len(arg) && arg[at] == 'S':
			line = arg[at+1:]
		case takesNext(arg, values):
			i++
			continue
		case strings.HasPrefix(arg, "-") && arg != "--", strings.Contains(arg, "="):
			continue
		default:
			return args
		}
		words := simpleCommand(line)
		if words == nil {
			words = strings.Fields(line)
		}
		return slices.Concat(args[:i], words, rest)
	}
	return args
}

func (w *wrapper) inner(args []string) []string {
	skip, after, values := w.skip, w.after, strings.Fields(w.values)
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			args, i = args[i+1:], -1
			if after == "" && skip <= 0 {
				return args
			}
		case strings.HasPrefix(arg, "-") && len(arg) > 1:
			if takesNext(arg, values) {
				i++
			}
		case after != "":
			if !slices.Contains(strings.Split(after, "|"), arg) {
				return nil
			}
			after = ""
		case w.assigns && strings.Contains(arg, "="):
		case skip > 0:
			skip--
		default:
			return args[i:]
		}
	}
	return nil
}

func shellName(name string) bool {
	switch name {
	case "sh", "bash", "dash", "ash", "zsh", "ksh", "mksh", "yash":
		return true
	}
	return false
}

// shellLineOf returns LINE of `sh -c LINE`, and of other programs that hand a
// line to a shell; "" when there is none.
func shellLineOf(argv []string) string {
	if len(argv) < 2 {
		return ""
	}
	name := strings.TrimSuffix(path.Base(argv[0]), ".exe")
	switch name {
	case "su", "sg":
		return lineAfter(argv, "--command")
	case "runuser", "script", "flock":
		return ownLine(name, argv)
	case "nix-shell":
		return lineAfter(argv, "--run")
	}
	if !shellName(name) {
		return ""
	}
	for i := 1; i < len(argv); i++ {
		arg := argv[i]
		if len(arg) < 2 || arg[0] != '-' && arg[0] != '+' {
			return ""
		}
		if endsInC(arg) && i+1 < len(argv) {
			return argv[i+1]
		}
		if arg[1] != '-' && strings.HasSuffix(strings.ToLower(arg), "o") || arg == "--rcfile" || arg == "--init-file" {
			i++
		}
	}
	return ""
}

// lineAfter returns what follows a flag, or -c, wherever it stands.
func lineAfter(argv []string, flag string) string {
	for i := 1; i+1 < len(argv); i++ {
		if argv[i] == flag || endsInC(argv[i]) {
			return argv[i+1]
		}
	}
	return ""
}

// ownLine is lineAfter for wrappers that take a command as well, whose -c is
// not theirs: `flock LOCK psql -c SQL`, `runuser -u app psql -c SQL`. What
// follows `--` is a command, and so is what follows a lock file, unless it is -c.
func ownLine(name string, argv []string) string {
	var values []string
	if w := wrapperOf(name); w != nil {
		values = strings.Fields(w.values)
	}
	for i := 1; i+1 < len(argv); i++ {
		arg := argv[i]
		switch {
		case arg == "--command" || endsInC(arg):
			return argv[i+1]
		case arg == "--" || name == "runuser" && runsCommand(arg, values):
			return ""
		case takesNext(arg, values):
			i++
		case name == "flock" && !strings.HasPrefix(arg, "-"):
			if next := argv[i+1]; (next == "-c" || next == "--command") && i+2 < len(argv) {
				return argv[i+2]
			}
			return ""
		}
	}
	return ""
}

// runsCommand reports whether a flag of runuser's names the user (-u app, -uapp,
// --user=app), after which it takes a command instead of a line.
func runsCommand(arg string, values []string) bool {
	at := valued(arg, values)
	return at < len(arg) && arg[at] == 'u' || arg == "--user" || strings.HasPrefix(arg, "--user=")
}

// endsInC reports whether an argument is -c, alone or behind other letters.
func endsInC(arg string) bool {
	return len(arg) > 1 && arg[0] == '-' && arg[1] != '-' && strings.HasSuffix(arg, "c")
}

// pythonModule returns the command of `python -m MODULE`, when the module is a
// tool with a file of its own.
func (t *tables) pythonModule(argv []string) []string {
	for i := 1; i < len(argv); i++ {
		arg := argv[i]
		switch {
		case arg == "-m" && i+1 < len(argv):
			return t.moduleTool(argv[i+1:])
		case strings.HasPrefix(arg, "-m") && len(arg) > 2:
			return t.moduleTool(append([]string{arg[2:]}, argv[i+1:]...))
		case arg == "-W" || arg == "-X":
			i++
		case !strings.HasPrefix(arg, "-") || arg == "-c" || arg == "-":
			return nil
		}
	}
	return nil
}

func (t *tables) moduleTool(inner []string) []string {
	name := strings.ReplaceAll(inner[0], "_", "-")
	for _, try := range [...]string{inner[0], name} {
		if t.lookup(try) != nil {
			return append([]string{try}, inner[1:]...)
		}
	}
	return nil
}

// unversioned cuts the version off a package name: jest@29, @scope/tool@1.
func unversioned(argv []string) []string {
	name := argv[0]
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		name = name[:at]
	}
	if name == argv[0] {
		return argv
	}
	return append([]string{name}, argv[1:]...)
}
