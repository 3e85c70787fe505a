#!/bin/sh
# The first call is malformed in two ways. Nothing is retried unchanged: each
# failure goes to the corrector, and what that prints is run instead.
cd "$(dirname "$0")" || exit
call=${1-'{"to":"ops","level":"three"'}
exec retryx --step notify \
	--rule 'correctable: exit=2 stderr="invalid call"' \
	--correct ./correct.sh --max-corrections 3 \
	-- ./notify.sh "$call"
