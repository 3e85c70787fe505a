#!/bin/sh
# What retryx adds to a command that succeeds at once: milliseconds for
# /bin/true bare, under timeout(1), and under retryx. Needs hyperfine.
set -eu
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
CGO_ENABLED=0 go build -trimpath -o "$dir/retryx" .
export HOME="$dir"
"$dir/retryx" --outcome none -- true # makes the state directory
hyperfine -N --warmup 20 --runs "${RUNS:-300}" --export-csv "$dir/out.csv" \
	'/bin/true' 'timeout 5 /bin/true' \
	"$dir/retryx --outcome none -- /bin/true" >/dev/null
awk -F, 'NR > 1 { printf "%-48s median %.2f ms\n", $1, $6 * 1000 }' "$dir/out.csv"
