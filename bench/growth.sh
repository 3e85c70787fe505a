#!/bin/sh
# growth.sh: what a run and the commands cost, by the size of the journal, the
# number of budgets, rules, attempts and layers, and the volume of output. See
# bench/growth/main.go. Takes 4 GB of disk while it runs.
#
#   bench/growth.sh [-rounds N] [-big BYTES] [-strict]
set -eu
cd "$(dirname "$0")/.."
. bench/tools.sh
build growth
mkdir "$dir/work"
"$dir/growth" -dir "$dir/work" "$@"
