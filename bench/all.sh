#!/bin/sh
# Every figure of the documentation, one script each.
cd "$(dirname "$0")" || exit
for script in start budget classify redis fanout fleet; do
	[ -x "$script.sh" ] || continue
	echo "== $script"
	"./$script.sh" || exit
done
