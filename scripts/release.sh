#!/bin/sh
# usage: release.sh VERSION
#
# Tags the module at the root, and those in contrib. The tags of contrib are on a commit beside the branch, on which these modules require the
# version instead of the folder above. Nothing is pushed. If something fails, the repository stays as it was.
set -eu
version=${1-}
fail() { echo "make release: $*" >&2; exit 1; }
echo "$version" | grep -Eq '^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$' || fail "VERSION is \"$version\"; expected one such as v0.1.0"
[ -z "$(git status --porcelain)" ] || fail 'commit your changes first'
newest=$(sed -n '/^## /{p;q;}' CHANGELOG.md)
case $newest in
"## $version ("[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]")") ;;
*) fail "CHANGELOG.md begins with \"$newest\"; expected \"## $version ($(date -u +%Y-%m-%d))\"" ;;
esac
if git rev-parse -q --verify "refs/tags/$version" >/dev/null; then fail "the tag $version exists"; fi

repo=$(pwd)
module=$(go list -m)
work=$(mktemp -d)
tags=
clean() {
	status=$?
	[ $status = 0 ] || [ -z "$tags" ] || git -C "$repo" tag -d $tags >/dev/null
	git -C "$repo" worktree remove --force "$work/tree"
	rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM
tag() { git tag "$1" && tags="$tags $1"; }

tag "$version"
git worktree add -q --detach "$work/tree"
cd "$work/tree"

# The go command asks this repository instead of the one at the module's address, and keeps what it gets apart from its other modules.
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0="url.$repo.insteadOf" GIT_CONFIG_VALUE_0="https://$module"
export GOPRIVATE="$module" GOPROXY="file://$(go env GOMODCACHE)/cache/download,$(go env GOPROXY)"
export GOMODCACHE="$work/modules" GOFLAGS=-modcacherw
for m in contrib/*; do # go mod download adds the sums of the root to go.sum, which lacks nothing else
	(cd "$m" && go mod edit -dropreplace="$module" -require="$module@$version" && go mod download "$module@$version")
done
git commit -qam "Let contrib require $version"
for m in contrib/*; do tag "$m/$version"; done

echo "tagged$tags"
echo "to publish them: git push origin HEAD$tags"
