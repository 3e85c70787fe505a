#!/bin/sh
# instructions.sh: how many instructions a decision, a judgement and a whole run
# take, counted by valgrind, so that a regression is seen on a busy machine too.
# What a benchmark's own start costs is taken off by running it twice.
#
#   bench/instructions.sh          compare with bench/instructions.txt
#   bench/instructions.sh -w       write it anew
#
# Fails if something takes a tenth more than it did. The file names the version of
# Go and the architecture that it was made with; with others it only prints.
set -eu
cd "$(dirname "$0")/.."
. bench/tools.sh
need valgrind
build
made="$(go env GOVERSION) $(go env GOARCH)"
# One thread, no collections, no signals among the threads: what differs from run
# to run is a hundredth.
export GOMAXPROCS=1 GOGC=off GODEBUG=asyncpreemptoff=1

# count COMMAND...: instructions of this process alone.
count() {
	valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null "$@" 2>&1 >/dev/null |
		awk '/I +refs:/ { n = $NF; gsub(",", "", n) } END { if (!n) exit 1; print n }'
}

# row PACKAGE BENCHMARK FEW MANY: of one round.
row() {
	binary="$dir/$(basename "$1").test"
	[ -e "$binary" ] || go test -c -o "$binary" "./$1"
	few=$(cd "$1" && count "$binary" -test.run '^$' -test.bench "^Benchmark$2\$" -test.benchtime "$3x")
	many=$(cd "$1" && count "$binary" -test.run '^$' -test.bench "^Benchmark$2\$" -test.benchtime "$4x")
	echo "$1/$2 $(((many - few) / ($4 - $3)))"
}

# program NAME COMMAND...: of a whole process, the least of three.
program() {
	name=$1
	shift
	for _ in 1 2 3; do count "$@"; done | sort -n | sed "s|^|$name |;q"
}

rows() {
	row exec Decide/success 1000 101000
	row exec Decide/ask 1000 101000
	row exec Decide/denied 1000 101000
	row exec Backoff/equal 1000 101000
	row budget Bucket/granted 1000 101000
	row budget Bucket/denied 1000 101000
	row budget Breaker/succeeding 1000 101000
	row budget/filestore Codec/encode 100 10100
	row budget/filestore Codec/decode 100 10100
	row statefile Slots/read 100 10100
	row statefile Slots/seal 100 10100
	row classify Read 100 10100
	row classify ClassifyOneLine 10 210
	row classify Classify64KiB/git 2 8
	program retryx/success "$dir/retryx" --outcome none -- true
	program retryx/lean "$dir/retryx" --outcome none --no-budget --no-journal -- true
	program retryx/failure "$dir/retryx" --outcome none --no-budget -n 1 -- false
}

if [ "${1:-}" = -w ]; then
	{ echo "# instructions a round, $made"; rows; } >"$dir/new"
	cp "$dir/new" bench/instructions.txt
	exit
fi
rows | awk -v made="$made" '
	NR == FNR { if (/^#/) same = index($0, made); else was[$1] = $2; next }
	FNR == 1 { printf "%-34s %12s %12s %8s\n", "instructions a round", "now", "baseline", "change" }
	{
		change = was[$1] ? 100 * ($2 - was[$1]) / was[$1] : 0
		printf "%-34s %12d %12d %+7.1f%%\n", $1, $2, was[$1], change
		if (change > 10) worse = worse " " $1
	}
	END {
		if (!same) print "the baseline was made with another version of Go or for another processor"
		else if (worse) { print "takes a tenth more:" worse; exit 1 }
	}' bench/instructions.txt -
