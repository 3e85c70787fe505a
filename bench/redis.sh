#!/bin/sh
# redis.sh: how many decisions a second one Redis takes, by the benchmarks of
# budget/redisstore, which start a server of their own: clients on one connection
# each, and a new connection for every decision, as short runs have it.
#
#   bench/redis.sh
set -eu
cd "$(dirname "$0")/.."
exec go test ./budget/redisstore -run '^$' -bench . -benchtime "${BENCHTIME:-2s}"
