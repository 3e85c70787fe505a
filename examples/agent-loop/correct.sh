#!/bin/sh
# Stands for the model. It reads the structured failure (retryx.failure/v1) on
# stdin and prints the whole corrected command as a JSON array of strings. What
# it cannot correct it refuses with a status other than 0.
failure=$(cat)
case $failure in
*'"stderr_tail":"notify: invalid call: not a JSON object'*)
	echo '["./notify.sh", "{\"to\":\"ops\",\"level\":\"three\"}"]' ;;
*'"stderr_tail":"notify: invalid call: level: want a number'*)
	echo '["./notify.sh", "{\"to\":\"ops\",\"level\":3}"]' ;;
*) exit 1 ;;
esac
