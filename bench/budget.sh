#!/bin/sh
# budget.sh: how long one decision of a budget takes: alone, as a success that has
# nothing to write, and among 100 processes that want one at the same moment or as
# fast as they can. On the disk, on tmpfs, and, where redis-server is installed,
# in Redis with a new connection for each decision, as short runs have it.
#
# 100 processes that never pause are 50 for each of two processors: what the
# slowest hundredth of them waits for is a processor, not the lock.
#
#   bench/budget.sh
#   DISK=/var/tmp MEMORY=/dev/shm BENCHTIME=1s bench/budget.sh
set -eu
cd "$(dirname "$0")/.."
time=${BENCHTIME:-1s}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# table PLACE: a line for each benchmark that comes in, in microseconds.
table() {
	awk -v place="$1" '
		function value(unit, i) { for (i = 3; i < NF; i++) if ($(i + 1) == unit) return $i; return "" }
		function microseconds(which) { return value(which "-us") != "" ? value(which "-us") : value(which "-ns") / 1000 }
		/^Benchmark/ {
			what = "alone"
			if ($1 ~ /SettleFull/) what = "success, nothing to write"
			if ($1 ~ /Herd/) what = "100 at the same moment"
			if ($1 ~ /Contention|clients=100/) what = "100 that never pause"
			printf "%-6s %-26s median %8.0f us   p99 %8.0f us\n", place, what, microseconds("p50"), microseconds("p99")
		}'
}

go test -c -o "$dir/file" ./budget/filestore
for place in "disk ${DISK:-/var/tmp}" "tmpfs ${MEMORY:-/dev/shm}"; do
	name=${place%% *} path=${place#* }
	[ -d "$path" ] || continue
	TMPDIR=$path "$dir/file" -test.run '^$' -test.benchtime "$time" \
		-test.bench '^Benchmark(Withdraw|SettleFull|Herd|Contention)$' | table "$name"
done
if command -v redis-server >/dev/null; then
	go test ./budget/redisstore -run '^$' -benchtime "$time" \
		-bench '^BenchmarkWithdraw$/clients=(1|100)$/budgets=1$/fresh=true' | table redis
fi
