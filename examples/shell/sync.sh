#!/bin/sh
# Fetch a page and act on the outcome without reading exit codes only.
set -eu
url=${1:?usage: sync.sh URL}

outcome=$(mktemp)
trap 'rm -f "$outcome"' EXIT

if page=$(retryx --stdout commit --outcome "$outcome" -b example -n 3 --delay "${DELAY:-1s}" -- curl -fsS "$url"); then
	printf '%s\n' "$page"
	exit
else
	status=$?
fi

# One line of JSON says why. Words are enough for most; use jq for more.
case $(cat "$outcome") in
*'"reason":"budget_denied"'*) echo "sync: others are retrying already; trying again at the next run" >&2 ;;
*'"outcome":"retryable_failure"'*) echo "sync: the service does not answer" >&2 ;;
*'"outcome":"hard_failure"'*) echo "sync: somebody has to look at this" >&2 ;;
*) echo "sync: interrupted" >&2 ;;
esac
exit "$status"
