#!/bin/sh
# The first quarter of an hour with retryx, as a session: install the package,
# wrap a failing curl, read the outcome, set up a profile, complete the name of a
# budget, make a report. It needs a .deb, dpkg, bash and curl, talks to loopback
# only, and leaves nothing behind.
#
#   ./walk.sh retryx_1.0.0_linux_amd64.deb
set -eu
deb=${1:?usage: walk.sh FILE.deb}

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
export HOME="$root/home"
mkdir -p "$HOME" "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates"
: >"$root/var/lib/dpkg/status"
unset XDG_CONFIG_HOME XDG_STATE_HOME RETRYX_RUN_ID

title() { printf '\n# %s\n' "$*"; }
show() {
	printf '$ %s\n' "$*"
	"$@"
}
# want STATUS COMMAND...: shows a command that ends with that status.
want() {
	expected=$1
	shift
	status=0
	show "$@" || status=$?
	[ "$status" = "$expected" ] || { echo "walk: that ended with $status, not $expected" >&2; exit 1; }
}
# has FILE TEXT: fails unless the text is in the file.
has() { grep -q -e "$2" "$1" || { echo "walk: $1 has no \"$2\":" >&2; cat "$1" >&2; exit 1; }; }

title install
# Into a folder, so that no root is needed. With root: apt install ./FILE.deb
show dpkg --root="$root" --force-not-root --log=/dev/null -i "$deb"
PATH="$root/usr/bin:$PATH"
show retryx version
has "$root/usr/share/man/man1/retryx.1" 'EXIT STATUS'

title 'wrap a failing curl'
# Nobody listens there, which may pass: two retries, then curl's own status.
want 7 retryx -b artifacts -n 3 --delay 10ms --outcome "$HOME/outcome.json" -- curl -fsS http://127.0.0.1:9/
# A name that does not exist will not pass, so nothing is repeated.
want 127 retryx --outcome none -- curll -fsS http://127.0.0.1:9/

title 'read the outcome'
show cat "$HOME/outcome.json"
has "$HOME/outcome.json" '"outcome":"retryable_failure","reason":"attempts_exhausted","class":"transient"'
show retryx history
show retryx budget show artifacts

title 'set up a profile'
show retryx config init
config="$HOME/.config/retryx/config.yaml"
cat >>"$config" <<'EOF'

profiles:
  patient:
    max_attempts: 6
    delay: 10ms
    max_elapsed: 2m
    budget: [artifacts]
EOF
show retryx config check
show retryx plan --profile patient -- curl -fsS http://127.0.0.1:9/ >"$HOME/plan"
cat "$HOME/plan"
has "$HOME/plan" '6'

title 'complete the name of a budget'
# What bash does when TAB is pressed after: retryx --budget art
completed=$(bash --norc --noprofile -c '
	. "$1/usr/share/bash-completion/completions/retryx"
	COMP_LINE="retryx --budget art" COMP_POINT=19 COMP_WORDS=(retryx --budget art) COMP_CWORD=2
	__retryx_complete retryx art --budget 2>/dev/null
	printf "%s\n" "${COMPREPLY[@]}"
' bash "$root")
printf 'retryx --budget art<TAB> %s\n' "$completed"
case $completed in artifacts*) ;; *) echo "walk: no budget was completed" >&2; exit 1 ;; esac

title 'make a report'
RETRYX_RUN_ID=$(retryx run-id)
export RETRYX_RUN_ID
want 0 retryx -q --step prepare -- true
want 7 retryx --profile patient -n 2 -q --outcome none --step fetch -- curl -sS http://127.0.0.1:9/
want 75 retryx report --expect prepare,fetch,publish --format text
