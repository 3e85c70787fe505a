#!/bin/sh
# Stands for any tool that takes a call as JSON and checks it before it does
# anything: notify.sh '{"to":"ops","level":3}'
call=$1
case $call in
'{'*'}') ;;
*) echo "notify: invalid call: not a JSON object: $call" >&2; exit 2 ;;
esac
case $call in
*'"to":"'*) ;;
*) echo "notify: invalid call: to: nobody to notify" >&2; exit 2 ;;
esac
case $call in
*'"level":'[0-9]*) ;;
*) echo "notify: invalid call: level: want a number" >&2; exit 2 ;;
esac
echo "notified with $call"
