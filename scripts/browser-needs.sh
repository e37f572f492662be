#!/bin/sh
# Sees to what the tests in browser/ need besides Go: Chromium, from Debian's packages, and axe-core, from npm.
set -eu
cd "$(dirname "$0")/../browser"

axe=4.14.1

if ! command -v chromium >/dev/null 2>&1; then
	echo 'browser-needs: installing chromium'
	root=
	[ "$(id -u)" = 0 ] || root=sudo
	{ $root apt-get update && $root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium fonts-dejavu-core; } || {
		echo 'browser-needs: chromium could not be installed. Install it by hand, so that the command chromium is on PATH.'
		exit 1
	}
fi

if ! grep -q "\"version\": \"$axe\"" node_modules/axe-core/package.json 2>/dev/null; then
	npm install --no-save --no-audit --no-fund --prefix . "axe-core@$axe" || {
		echo "browser-needs: axe-core $axe could not be installed. Install Node.js with npm, and see that npm reaches its registry."
		exit 1
	}
fi
