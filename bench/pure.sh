#!/bin/sh
# pure.sh: the Go benchmarks of the rooms that do no I/O, in the form that benchstat
# reads: deciding, backing off, the bucket and the breaker, a record's bytes, and
# judging a failure.
#
#   bench/pure.sh >new.txt
#   go run golang.org/x/perf/cmd/benchstat@latest bench/pure.txt new.txt
#
# bench/pure.txt is the baseline; times only compare on the machine that it names.
# bench/instructions.sh compares anywhere.
set -eu
cd "$(dirname "$0")/.."
go test -run '^$' -bench 'Decide|Backoff|Bucket|Breaker|Slots|Codec|Classify|Read$|SuccessRuleMatch' -benchmem -cpu 1 \
	-count "${COUNT:-6}" -benchtime "${BENCHTIME:-100ms}" ./exec ./budget ./budget/filestore ./statefile ./classify
