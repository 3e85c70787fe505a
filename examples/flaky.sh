#!/bin/sh
# Fails twice as a service that is just starting would, then succeeds: something
# to see retryx work on without a network. The attempt's number is part of the
# context that every command finds.
if [ "${RETRYX_ATTEMPT:-1}" -lt 3 ]; then
	echo "connect to 127.0.0.1 port 9: Connection refused" >&2
	exit 1
fi
echo "ready"
