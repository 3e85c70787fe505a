#!/bin/sh
# publish.sh REGISTRY NAME: publish once, also when the answer is lost.
cd "$(dirname "$0")" || exit
PACKAGE_URL=$1/packages/$2
export PACKAGE_URL
exec retryx --step publish --budget registry --delay "${DELAY:-1s}" \
	--reconcile ./published.sh \
	-- curl -fsS -X POST -d 'the package' "$PACKAGE_URL"
