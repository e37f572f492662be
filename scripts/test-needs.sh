#!/bin/sh
# Sees to what the tests need besides Go: redis-server or valkey-server, version 7 or newer. With the argument -race, also a C compiler,
# without which Go has no race detector. With -promtool, also promtool of Prometheus, which tests alert rules. What is missing is installed with the system's package manager.
set -eu

has() { command -v "$1" >/dev/null 2>&1; }

say() { echo "test-needs: $*"; }

root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif has sudo; then
		sudo "$@"
	else
		say "not root, and there is no sudo: cannot run $*"
		return 1
	fi
}

# The names that packages have: those of a server are tried one after the other.
packages() {
	for manager in apt-get dnf yum apk pacman zypper brew none; do
		if has "$manager"; then break; fi
	done
	compiler='gcc glibc-devel'
	servers='valkey redis'
	prometheus='prometheus'
	case $manager in
	apt-get) servers='redis-server valkey-server' compiler='gcc libc6-dev' ;;
	dnf) prometheus='golang-github-prometheus' ;;
	apk) compiler='gcc musl-dev' ;;
	pacman) compiler='gcc glibc' ;;
	brew) servers='redis valkey' compiler='gcc' ;;
	esac
}

install() {
	say "installing $* with $manager"
	case $manager in
	apt-get) root apt-get update && root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" ;;
	dnf | yum) root "$manager" install -y "$@" ;;
	apk) root apk add --no-cache "$@" ;;
	pacman) root pacman -Sy --noconfirm --needed "$@" ;;
	zypper) root zypper --non-interactive install "$@" ;;
	brew) brew install "$@" ;; # it refuses to run as root
	*)
		say "no package manager that is known here"
		return 1
		;;
	esac
}

# The server that the tests take: the first one of these on PATH.
server() {
	for name in redis-server valkey-server; do
		if has "$name"; then
			echo "$name"
			return
		fi
	done
}

need_server() {
	for package in $servers; do
		if [ -n "$(server)" ]; then break; fi
		install "$package" || say "$package could not be installed"
	done
	name=$(server)
	if [ -z "$name" ]; then
		say 'The tests need redis-server or valkey-server on PATH, version 7 or newer.'
		say 'Install one by hand: the package redis-server, redis or valkey of your system, or see https://valkey.io/download.'
		exit 1
	fi
	version=$("$name" --version | sed -n 's/.* v=\([0-9]*\).*/\1/p')
	if [ "${version:-0}" -lt 7 ]; then
		say "$(command -v "$name") is version ${version:-unknown}; the tests need 7 or newer."
		say 'Put a newer one before it on PATH: see https://valkey.io/download.'
		exit 1
	fi
	say "$(command -v "$name"), version $version"
}

need_compiler() {
	cc=$(go env CC)
	cc=${cc%% *}
	if ! has "$cc"; then
		# shellcheck disable=SC2086
		install $compiler || true
	fi
	if ! has "$cc"; then
		say "The race detector needs a C compiler, $cc. Install one, or run the tests without it: make test RACE="
		exit 1
	fi
}

need_promtool() {
	if ! has promtool; then install "$prometheus" || true; fi
	if ! has promtool; then
		say "The tests of alert rules need promtool on PATH. Install the package $prometheus, or take promtool from"
		say 'https://prometheus.io/download. To run the other tests: go test ./...'
		exit 1
	fi
}

packages
need_server
for need; do
	case $need in
	-race) need_compiler ;;
	-promtool) need_promtool ;;
	esac
done
