#!/bin/sh
# Runs every fuzz target of the module at the root, one after the other, each for the time that is given, such as 30s.
set -eu

found=$(go test -list '^Fuzz' ./...)
echo "$found" |
	awk '/^Fuzz/ { names[n++] = $1 } /^ok/ { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }' |
	while read -r package name; do
		echo "$package $name"
		go test -run '^$' -fuzz "^$name\$" -fuzztime "$1" -fuzzminimizetime 1s "$package"
	done
