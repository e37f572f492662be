#!/bin/sh
# usage: test-needs.sh [server] [compiler] [promtool] [chromium] [axe]
#
# Sees to what tests need besides Go. It installs what is missing with the system's package manager, and names all that it cannot install.
set -u
cd "$(dirname "$0")/../browser" || exit

axe=4.14.1

# packages NEED: its packages. A space stands between packages of which one is enough, a + between packages that belong together.
packages() {
	case $1:$manager in
	server:apt-get) echo redis-server valkey-server ;;
	server:brew) echo redis valkey ;;
	server:*) echo valkey redis ;;
	compiler:apt-get) echo gcc+libc6-dev ;;
	compiler:apk) echo gcc+musl-dev ;;
	compiler:dnf | compiler:yum | compiler:zypper) echo gcc+glibc-devel ;;
	compiler:*) echo gcc ;;
	promtool:dnf) echo golang-github-prometheus prometheus ;;
	promtool:zypper) echo golang-github-prometheus-prometheus ;;
	promtool:*) echo prometheus ;;
	chromium:apt-get) echo chromium+fonts-dejavu-core chromium-browser ;;
	chromium:apk) echo chromium+font-dejavu ;;
	chromium:pacman) echo chromium+ttf-dejavu ;;
	chromium:brew) echo google-chrome ;;
	chromium:*) echo chromium ;;
	axe:brew) echo node ;;
	axe:*) echo npm ;;
	esac
}

# name NEED: what people call it.
name() {
	case $1 in
	server) echo "redis-server, or else valkey-server, of version 7 or newer$(old_server)" ;;
	compiler) echo "the C compiler $(compiler), for the race detector (make test RACE= does without)" ;;
	promtool) echo 'promtool of Prometheus' ;;
	chromium) echo 'Chromium or Google Chrome' ;;
	axe) echo 'npm of Node.js, which installs axe-core' ;;
	esac
}

has() { command -v "$1" >/dev/null 2>&1; }

say() { echo "test-needs: $*"; }

met() {
	case $1 in
	server) [ "$(server_version)" -ge 7 ] ;;
	compiler) has "$(compiler)" ;;
	promtool) has promtool ;;
	chromium) has_chromium ;;
	axe) has_axe || has npm ;;
	esac
}

# server is the command that the tests take.
server() { command -v redis-server || command -v valkey-server; }

# server_version is 0 without a server.
server_version() {
	version=$("$(server || echo false)" --version | sed -n 's/.* v=\([0-9]*\).*/\1/p')
	echo "${version:-0}"
}

# old_server says which server is too old, if there is one. Another package may not help, because the tests take the first server on PATH.
old_server() {
	if old=$(server); then echo "; $old has version $(server_version): put a newer one before it on PATH"; fi
}

compiler() { go env CC | sed 's/ .*//'; }

# has_chromium looks where the tests look.
has_chromium() {
	case $(uname) in
	Darwin) set -- '/Applications/Chromium.app/Contents/MacOS/Chromium' '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome' ;;
	*) set -- headless_shell headless-shell chromium chromium-browser google-chrome google-chrome-stable ;;
	esac
	for command; do
		if has "$command"; then return; fi
	done
	return 1
}

has_axe() { grep -q "\"version\": \"$axe\"" node_modules/axe-core/package.json 2>/dev/null; }

missing() {
	for need; do
		if ! met "$need"; then echo "$need"; fi
	done
}

# look_around finds the package manager. It sets root, which runs a command as root, or obstacle, which says why nothing can be installed.
look_around() {
	manager= root= obstacle=
	for found in apt-get dnf yum apk pacman zypper brew; do
		if [ -z "$manager" ] && has "$found"; then manager=$found; fi
	done
	if [ -z "$manager" ]; then
		obstacle='there is none of the package managers apt-get, dnf, yum, apk, pacman, zypper, brew'
	elif [ "$manager" != brew ] && [ "$(id -u)" != 0 ]; then # brew refuses to run as root
		root=sudo
		if ! has sudo; then obstacle="you are not root, and there is no sudo for $manager"; fi
	fi
}

install() {
	case $manager in
	apt-get) set -- env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" ;;
	dnf | yum) set -- "$manager" install -y "$@" ;;
	apk) set -- apk add --no-cache "$@" ;;
	pacman) set -- pacman -Sy --noconfirm --needed "$@" ;;
	zypper) set -- zypper --non-interactive install "$@" ;;
	brew) set -- brew install "$@" ;;
	esac
	say "$@"
	$root "$@"
}

look_around
needs=$(missing "$@")
if [ -n "$needs" ] && [ -z "$obstacle" ]; then
	if [ "$manager" = apt-get ]; then $root apt-get update; fi
	for need in $needs; do
		for package in $(packages "$need"); do
			# shellcheck disable=SC2046
			met "$need" || install $(echo "$package" | tr + ' ')
		done
	done
fi
needs=$(missing "$@")
if [ -n "$needs" ]; then
	say "${obstacle:-$manager did not install everything}"
	for need in $needs; do
		say "missing: $(name "$need"). Package: $(packages "$need" | sed 's/ / or /g; s/+/ and /g')"
	done
	exit 1
fi
case " $* " in *' axe '*)
	has_axe || npm install --no-save --no-audit --no-fund --prefix . "axe-core@$axe" || {
		say "axe-core $axe could not be installed; see that npm reaches its registry"
		exit 1
	}
	;;
esac
