#!/bin/sh
# streams.sh: what a gigabyte on stdout and on stderr costs, how much memory it
# takes, and how long a byte is on its way. See bench/streams/main.go.
#
#   bench/streams.sh [-rounds N] [-size BYTES] [-strict]
set -eu
cd "$(dirname "$0")/.."
. bench/tools.sh
build streams
# In memory where that is to be had, so that no disk is measured.
files=$dir
if [ -w /dev/shm ]; then
	files=$(mktemp -d /dev/shm/streams.XXXXXX)
	trap 'rm -rf "$dir" "$files"' EXIT
fi
"$dir/streams" -dir "$files" "$@"
