#!/bin/sh
# What a decision of the budget costs: alone, and with 100 processes at once.
set -eu
cd "$(dirname "$0")/.."
go test -run '^$' -bench . -benchtime "${BENCHTIME:-1s}" ./budget/filestore
