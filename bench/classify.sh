#!/bin/sh
# What judging a failure costs: one line of curl, and 64 KiB against all rules;
# then how the judgement scores on the labeled failures in the tree.
set -eu
cd "$(dirname "$0")/.."
go test -run '^$' -bench . -cpu 1 ./classify
go test -count=1 -run Score -v ./classify | grep -E 'action|PASS|FAIL'
