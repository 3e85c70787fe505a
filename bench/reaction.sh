#!/bin/sh
# reaction.sh: how long retryx takes to let go, after a signal, a cancel file, the
# end of its caller and that of its child. See bench/reaction/main.go.
#
#   bench/reaction.sh [-rounds N] [-strict]
set -eu
cd "$(dirname "$0")/.."
. bench/tools.sh
build reaction
"$dir/reaction" -dir "$dir" "$@"
