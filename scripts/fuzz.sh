#!/bin/sh
# Runs every fuzz target of some modules, one after the other: fuzz.sh TIME MODULE... with a time for each target, such as 30s.
set -eu

time=$1
shift
for module; do
	found=$(cd "$module" && go test -list '^Fuzz' ./...)
	echo "$found" |
		awk '/^Fuzz/ { names[n++] = $1 } /^ok/ { for (i = 0; i < n; i++) print $2, names[i]; n = 0 }' |
		while read -r package name; do
			echo "$package $name"
			(cd "$module" && go test -run '^$' -fuzz "^$name\$" -fuzztime "$time" -fuzzminimizetime 1s "$package")
		done
done
