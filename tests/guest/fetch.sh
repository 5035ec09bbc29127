#!/bin/bash
# fetch.sh [-s SUITE] [-d] ARCH DIR PACKAGE...
#
# Unpacks Debian packages of another architecture into DIR, from the mirrors
# that this machine uses.  apt gets lists and a status of its own, in
# DIR.apt, so that the machine's sources and architectures stay as they are.
#
#   -s SUITE   from that suite alone (bookworm-backports), not from this machine's
#   -d         of each package the first that it depends on: what a metapackage stands for
set -euo pipefail

suite='' meta=''
while getopts s:d option; do
	case $option in
	s) suite=$OPTARG ;;
	d) meta=1 ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
arch=$1 dir=$2
shift 2

fail() {
	echo "fetch.sh: $*" >&2
	exit 1
}

command -v apt-get >/dev/null || fail "apt-get is needed to fetch packages for $arch"
mkdir -p "$dir" "$dir.apt"/{state/lists/partial,cache/archives/partial,debs}
state=$(cd "$dir.apt" && pwd)
: >"$state/status"

# shellcheck disable=SC2016 # apt-get replaces these
apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
	sort -u | while read -r uri release component; do
	# Another suite is found beside this machine's own, not beside its updates.
	[ -z "$suite" ] || [[ $release != *-* ]] || continue
	echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
		"$uri ${suite:-$release} $component"
done >"$state/sources.list"
[ -s "$state/sources.list" ] || fail "this machine has no apt sources to fetch from"

apt() {
	local program=$1
	shift
	"$program" -q \
		-oAPT::Architecture="$arch" -oAPT::Architectures="$arch" \
		-oAPT::Sandbox::User=root -oAcquire::Languages=none -oAcquire::Retries=2 \
		-oDir::State="$state/state" -oDir::State::status="$state/status" \
		-oDir::Cache="$state/cache" -oDir::Etc::sourcelist="$state/sources.list" \
		-oDir::Etc::sourceparts=/dev/null -oDir::Etc::preferencesparts=/dev/null \
		"$@"
}

apt apt-get -oAPT::Update::Error-Mode=any update >"$state/log" 2>&1 ||
	fail "cannot reach the Debian mirror for $arch packages: $(grep -m1 '^[EW]:' "$state/log")"
if [ -n "$meta" ]; then
	# shellcheck disable=SC2046 # one word for each package
	set -- $(apt apt-cache depends "$@" | sed -n 's/^ *Depends: \([^<]*\)$/\1/p' | head -n $#)
	[ $# -gt 0 ] || fail "the packages for $arch depend on nothing"
fi
rm -f "$state"/debs/*.deb
cd "$state/debs"
apt apt-get download "$@" >"$state/log" 2>&1 ||
	fail "cannot fetch $* for $arch: $(grep -m1 '^E:' "$state/log")"
cd - >/dev/null
for deb in "$state"/debs/*_"$arch".deb "$state"/debs/*_all.deb; do
	[ ! -e "$deb" ] || dpkg-deb -x "$deb" "$dir"
done
