# What the scripts of this directory share; they read it with `.` from the top of
# the checkout. It makes $dir, a directory that is gone at the end, with a HOME of
# its own in it, so that no record, journal or configuration of the user's is
# touched; and builds $dir/retryx as releases are built (or takes BINARY), and the
# named programs of the bench module beside it.

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

# need TOOL...: all of them are installed, or the script ends.
need() {
	for tool in "$@"; do
		command -v "$tool" >/dev/null || { echo "$0: $tool is not installed" >&2; exit 1; }
	done
}

# build PROGRAM...: retryx and these programs of the bench module.
build() {
	if [ -n "${BINARY:-}" ]; then
		cp "$BINARY" "$dir/retryx"
	else
		CGO_ENABLED=0 go build -trimpath -o "$dir/retryx" .
	fi
	for program in "$@"; do
		(cd bench && CGO_ENABLED=0 go build -trimpath -o "$dir/$program" "./$program")
	done
	# Go's own caches stay where they are.
	GOMODCACHE=$(go env GOMODCACHE) GOCACHE=$(go env GOCACHE)
	export GOMODCACHE GOCACHE
	unset $(env | sed -n 's/^\(RETRYX_[A-Z_]*\)=.*/\1/p')
	export HOME="$dir/home" XDG_STATE_HOME= XDG_CONFIG_HOME= PATH="$dir:$PATH"
	mkdir "$HOME"
}
