#!/bin/sh
# Did it happen? 0: yes. 1: no. Anything else: nobody can tell.
case $(curl -s -o /dev/null -w '%{http_code}' "$PACKAGE_URL") in
200) exit 0 ;;
404) exit 1 ;;
*) exit 2 ;;
esac
