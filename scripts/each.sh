#!/bin/sh
# usage: each.sh TARGET...
#
# Makes each target, two at a time, and goes on if one fails. It prints the results of go test as they come. At the end it prints all that
# the failed targets have said, and their names.
set -u
logs=$(mktemp -d)
export logs
trap 'rm -rf "$logs"' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

printf '%s\n' "$@" | xargs -n 1 -P 2 sh -c '
	log=$logs/$(echo "$1" | tr / .)
	{ "${MAKE:-make}" "$1" 2>&1 || echo "$1" >"$log.failed"; } | tee "$log" | while IFS= read -r line; do
		case $line in "ok "* | FAIL* | "--- "*) printf "%s\n" "$line" ;; esac
	done' each

failed=
for name in "$logs"/*.failed; do
	[ -e "$name" ] || break
	echo
	echo "== make $(cat "$name")"
	cat "${name%.failed}"
	failed="$failed $(cat "$name")"
done
if [ -n "$failed" ]; then
	echo
	echo "failed:$failed"
	exit 1
fi
