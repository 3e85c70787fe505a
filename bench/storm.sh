#!/bin/sh
# storm.sh: a service dies under calls that retry, and comes back with little more
# capacity than their first attempts need. See bench/storm/main.go for what is
# measured, and bench/README.md for the load.
#
#   bench/storm.sh [scenario...]             all of them: 25 minutes
#   DOWN=10s AFTER=20s bench/storm.sh budget # a shorter one
#   SVG=docs/img/storm.svg bench/storm.sh    # also draw the curves
#
# It fails if the bound of a budget is broken.
set -eu
cd "$(dirname "$0")/.."
. bench/tools.sh
build probe storm
"$dir/storm" -dir "$dir" -down "${DOWN:-60s}" -after "${AFTER:-60s}" -rate "${RATE:-2}" -seed "${SEED:-1}" -svg "${SVG:-}" "$@"
