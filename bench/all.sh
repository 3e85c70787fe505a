#!/bin/sh
# all.sh: every figure of the documentation, one script each, and the machine that
# they were made on. About ten minutes, and 25 more for the storm; STORM=no leaves
# it out. Let nothing else run meanwhile.
cd "$(dirname "$0")" || exit

echo "== machine"
date -u +%F
uname -srm
{ grep -m 1 'model name' /proc/cpuinfo || sysctl -n machdep.cpu.brand_string; } 2>/dev/null | sed 's/.*: //'
echo "$(getconf _NPROCESSORS_ONLN) processors, load $(uptime | sed 's/.*average[s]*: //')"
go version
git describe --always --dirty 2>/dev/null
for tool in hyperfine valgrind redis-server retry parallel; do
	command -v "$tool" >/dev/null || echo "$tool is not installed: what needs it is left out"
done

failed=
for script in startup streams reaction growth budget redis classify pure instructions fanout fleet storm; do
	[ -x "$script.sh" ] || continue
	[ "$script" != storm ] || [ "${STORM:-}" != no ] || continue
	case $script in
	startup) needs=hyperfine ;;
	instructions) needs=valgrind ;;
	redis | fleet) needs=redis-server ;;
	*) needs=sh ;;
	esac
	command -v "$needs" >/dev/null || continue
	printf '\n== %s\n' "$script"
	from=$(date +%s)
	"./$script.sh" || failed="$failed $script"
	echo "== $(($(date +%s) - from)) s"
done
[ -z "$failed" ] || { echo "failed:$failed" >&2; exit 1; }
