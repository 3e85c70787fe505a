#!/bin/sh
# fleet.sh: what a fleet sends to a dead service, with a budget on every machine
# and with one budget for all.
#
# A machine is a state directory. Each of MACHINES (8) machines runs CALLS (50)
# invocations of curl against a loopback port on which nobody listens, -n 4 each.
# Prints attempts per call for: no budget, a budget per machine, a shared budget.
# Needs curl and redis-server; both servers and files are gone afterwards.
set -eu

machines=${MACHINES:-8}
calls=${CALLS:-50}
cd "$(dirname "$0")/.."
. bench/tools.sh
need curl redis-server redis-cli
server=
cleanup() {
	[ -z "$server" ] || kill "$server" 2>/dev/null || :
	[ -z "$server" ] || wait "$server" 2>/dev/null || :
	rm -rf "$dir"
}
trap cleanup EXIT
build

redis-server --port 0 --unixsocket "$dir/socket" --save '' --dir "$dir" >/dev/null &
server=$!
until redis-cli -s "$dir/socket" ping >/dev/null 2>&1; do
	kill -0 "$server" || exit 1
done

# machine NAME FLAGS...: all calls of one machine. Port 1 takes no connections.
machine() {
	state=$dir/$1
	shift
	i=0
	while [ "$i" -lt "$calls" ]; do
		retryx -q -n 4 --delay 1ms --max-delay 1ms --state-dir "$state" --no-journal \
			--outcome "$state.outcomes" "$@" -- curl -fsS http://127.0.0.1:1/ >/dev/null 2>&1 || :
		i=$((i + 1))
	done
}

# fleet NAME FLAGS...: all machines at once; prints what they did.
fleet() {
	name=$1
	shift
	pids=
	m=0
	while [ "$m" -lt "$machines" ]; do
		machine "$name-$m" "$@" &
		pids="$pids $!"
		m=$((m + 1))
	done
	for pid in $pids; do wait "$pid"; done
	cat "$dir/$name"-*.outcomes |
		sed -n 's/.*"attempt_count":\([0-9]*\),.*"retries":\([0-9]*\),.*/\1 \2/p' |
		awk -v name="$name" '{ calls++; attempts += $1; retries += $2 }
			END { printf "%-12s %6d calls %6d attempts %6d retries  amplification %.2f\n", name, calls, attempts, retries, attempts / calls }'
}

echo "$machines machines, $calls calls each, 4 attempts at most, nothing works:"
fleet none --no-budget
fleet machine -b service
fleet shared -b service --budget-store "unix://$dir/socket"
