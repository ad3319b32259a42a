# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by what downloads Debian packages without installing them, after packages.sh and tests/sandbox/root.sh: an apt
# of its own for one release. Nothing of the machine's lists and cache is read or changed.
# shellcheck shell=sh disable=SC2154

# private_apt_begin DIRECTORY [deb-src]: for the release $suite, with its lists and its log in DIRECTORY/apt; of source
# packages instead of the others. Calls fail, the caller's, with a sentence.
private_apt_begin() {
	need_packages debian-archive-keyring wget >&2
	use_apt_proxy
	mirror=$(find_mirror) || fail "no Debian mirror with $suite is reached from apt's configuration (name one: SANDBOX_MIRROR=URL)"
	private_apt=$1/apt
	mkdir -p "$private_apt/lists/partial" "$private_apt/archives/partial" || fail "cannot write to $1"
	need_space 300 "$private_apt" "packages of Debian $suite"
	echo "${2:-deb} [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$private_apt/sources.list"
	: >"$private_apt/status"
	private_apt apt-get -o APT::Update::Error-Mode=any update >"$private_apt/log" 2>&1 || fail "apt-get update fails: $(reason_in "$private_apt/log")"
}

# private_apt TOOL ARGUMENT...: the Release file of a mirror that is frozen in time has expired.
private_apt() {
	_tool=$1
	shift
	"$_tool" -q -o Dir::State="$private_apt" -o Dir::State::status="$private_apt/status" -o Dir::Cache="$private_apt" \
		-o Dir::Etc::sourcelist="$private_apt/sources.list" -o Dir::Etc::sourceparts=- -o Acquire::Languages=none \
		-o Acquire::Check-Valid-Until=false -o APT::Sandbox::User=root "$@"
}

# private_apt_unpack DIRECTORY PACKAGE...: into DIRECTORY, and installs nothing.
private_apt_unpack() {
	_directory=$1
	shift
	(cd "$private_apt" && private_apt apt-get download "$@") >>"$private_apt/log" 2>&1 ||
		fail "apt-get cannot download $*: $(reason_in "$private_apt/log")"
	for _package in "$private_apt"/*.deb; do
		dpkg-deb -x "$_package" "$_directory" 2>>"$private_apt/log" ||
			fail "cannot unpack ${_package##*/}: $(reason_in "$private_apt/log")"
		rm -f "$_package"
	done
}
