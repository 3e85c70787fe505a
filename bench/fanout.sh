#!/bin/sh
# How long a tree lives on after its root: a root starts four workers three
# levels deep, each in a session of its own below the first, two at work and two
# always retrying, and is killed with -9. Every process of the tree holds one
# FIFO open, so that its end is the moment at which nothing of it is left.
# Needs setsid, and a date with nanoseconds (GNU).
set -eu
cd "$(dirname "$0")/.."
case $(date +%N) in
*[!0-9]* | '') echo "fanout: date knows no nanoseconds here" >&2; exit 1 ;;
esac
. bench/tools.sh
need setsid
build
export RETRYX_QUIET=1 RETRYX_OUTCOME=none RETRYX_NO_BUDGET=true
cd "$dir"

cat >one <<'END'
exec retryx -- sh ./two "$1"
END
cat >two <<'END'
setsid retryx -- sh ./three "$1"; exit $?
END
cat >three <<'END'
case $1 in
1 | 2) retryx -- sh -c 'echo up >>work; exec sleep 300' ;;
*) retryx -n 1000000 --delay 5ms --multiplier 1 --retry-exit 1 -- sh -c "echo try >>tries.$1; exit 1" ;;
esac
END

held() { [ -e "$1" ] && [ "$(wc -l <"$1")" -ge "$2" ]; }

# The root runs in the foreground and its killer in the background, as a shell
# starts what is in the background with INT ignored, and then retryx takes it
# for a job that is meant to be left.
round() {
	rm -f work tries.* end root
	mkfifo end
	{ cat end >/dev/null && date +%s%N >until; } &
	reader=$!
	{
		until held work 2 && held tries.3 3 && held tries.4 3; do sleep 0.01; done
		date +%s%N >from
		kill -9 "$(cat root)"
	} &
	sh -c 'echo $$ >root; echo 1 2 3 4 >list; exec xargs -P 4 -n 1 sh ./one <list' 9>end || true
	wait "$reader"
	echo $((($(cat until) - $(cat from)) / 1000))
}

for _ in $(seq "${RUNS:-20}"); do round; done 2>/dev/null | sort -n |
	awk '{ t[NR] = $1 } END { printf "a tree of 4 workers, 3 levels deep, after its root: median %.0f ms, longest %.0f ms of %d\n", t[int((NR + 1) / 2)] / 1000, t[NR] / 1000, NR }'
