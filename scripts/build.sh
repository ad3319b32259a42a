# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by ./run and ./check, after packages.sh: what a build needs, and how one is made.
# shellcheck shell=sh

# shellcheck disable=SC2034 # for those who source this
build_packages='gcc libc6-dev meson ninja-build pkg-config python3
	libmicrohttpd-dev libgnutls28-dev libseccomp-dev libcurl4-gnutls-dev libyaml-dev libpcre2-dev libsqlite3-dev zlib1g-dev libcrypt-dev
	libcairo2-dev libpango1.0-dev fonts-dejavu-core libjs-dygraphs libmariadb-dev libslurm-dev'

# has_work DIRECTORY: whether anything would be built there.
has_work() {
	# shellcheck disable=SC2086 # a list of files
	[ ! -e "$1/build.ninja" ] || ! ninja -n -C "$1" ${build_targets:-} 2>/dev/null | grep -q 'no work to do'
}

# build DIRECTORY [MESON OPTION...]: configures it once, then builds what has changed, of $build_targets if set. Says so
# before, as it may take a minute, and is quiet otherwise unless it fails. With ccache, a clone in another directory
# gets what this one has compiled.
build() {
	_directory=$1
	shift
	_log=$_directory.log
	mkdir -p "$(dirname "$_directory")"
	! has_work "$_directory" || echo "Building in $_directory (log: $_log)" >&2
	{
		[ -e "$_directory/build.ninja" ] || meson setup "$_directory" "$@"
		# shellcheck disable=SC2086 # a list of files
		CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=$PWD ninja -C "$_directory" ${build_targets:-}
	} >"$_log" 2>&1 || build_failed
}

build_failed() {
	_free=$(free_megabytes "$(dirname "$_directory")")
	if [ "$_free" -lt 20 ] || grep -q 'No space left on device' "$_log"; then
		echo "The build in $_directory failed as a disk is full ($_free MB are free in $PWD/$(dirname "$_directory")): make room there and in /tmp, and run it again" >&2
	else
		echo "The build in $_directory failed:" >&2
		grep -E 'error|ERROR|FAILED' "$_log" | head -n 20 >&2
		echo "(all of it: $_log)" >&2
	fi
	exit 1
}
