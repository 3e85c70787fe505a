#!/bin/sh
# startup.sh: what it costs to run a command that succeeds at once: bare, under
# timeout(1) and Debian's retry, under the least program in Go that can do it, and
# under retryx. hyperfine runs them in turns, a few times each per round, so that
# what else the machine does bears on all. See bench/startup/main.go.
#
#   bench/startup.sh [-rounds N] [-runs N] [-strict]
set -eu
cd "$(dirname "$0")/.."
. bench/tools.sh
need hyperfine timeout
build bare startup
"$dir/retryx" --outcome none -- true # the first run makes the state directory
set -- "$@" -- true "timeout 10 true"
[ ! -x /usr/bin/retry ] || set -- "$@" "/usr/bin/retry true"
"$dir/startup" -dir "$dir" "$@" "$dir/bare true" "$dir/bare -signals true" "$dir/retryx version" \
	"$dir/retryx --no-budget --no-journal -- true" "$dir/retryx -- true"
