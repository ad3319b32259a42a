# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by ./run, ./check and ./sandbox: need_packages installs the Debian packages that are missing.
# Asks dpkg first, so that with everything in place it is silent, instant and needs no network.
# shellcheck shell=sh

# need_packages PACKAGE...: returns with all of them installed, or ends the script with status 1 and a sentence.
# SONDE_INSTALL=no: installs nothing and trusts that what is needed is there (other distributions, own builds).
need_packages() {
	[ "${SONDE_INSTALL:-yes}" != no ] || return 0
	if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
		echo "This system has no apt-get. Install by its own means what Debian calls:" >&2
		echo "  $*" >&2
		echo "then run again with SONDE_INSTALL=no in the environment." >&2
		exit 1
	fi
	_missing=$(_packages_missing "$@")
	[ -n "$_missing" ] || return 0

	_as_root=$(_packages_as_root "$_missing") || exit 1
	echo "Installing missing Debian packages${_as_root:+ with sudo, as apt-get needs root}: $_missing" >&2
	_log=$(mktemp "${TMPDIR:-/tmp}/sonde-apt.XXXXXX") || exit 1
	_packages_hold_daemons
	# A third party's broken repository makes update fail, and need not concern the packages wanted here:
	# install decides.
	_packages_apt update >"$_log" 2>&1 || true
	# shellcheck disable=SC2086 # a list of names
	if _packages_apt install -y --no-install-recommends $_missing >>"$_log" 2>&1; then
		_packages_release_daemons
		rm -f "$_log"
		return 0
	fi
	_packages_release_daemons
	echo "apt-get could not install $_missing: $(reason_in "$_log") (log: $_log)" >&2
	exit 1
}

# reason_in LOG: why apt-get, dpkg or debootstrap failed: a full disk, or else its first line that begins with E:, or its last.
reason_in() {
	awk '
		/No space left on device/ { full = $0 }
		/^E: / && !reason { reason = substr($0, 4) }
		NF { last = $0 }
		END { print full ? full : reason ? reason : last ? last : "it gives no reason" }' "$1"
}

free_megabytes() {
	df -P -k "$1" | awk 'NR == 2 { print int($4 / 1024) }'
}

# need_space MEGABYTES DIRECTORY WHAT: ends the script, by the caller's fail, unless there is room for it.
need_space() {
	_free=$(free_megabytes "$2")
	[ "${_free:-0}" -ge "$1" ] || fail "no room for $3 in $2: it needs $1 MB, $_free MB are free"
}

_packages_missing() {
	# Several lines can come for one name (foreign architectures): one installed is enough.
	dpkg-query -W -f '${Package} ${db:Status-Status}\n' "$@" 2>/dev/null | awk -v wanted="$*" '
		$2 == "installed" { have[$1] = 1 }
		END {
			n = split(wanted, name, " ")
			for (i = 1; i <= n; i++) if (!(name[i] in have)) { printf "%s%s", separator, name[i]; separator = " " }
		}'
}

# Prints what to put before a command that needs root.
_packages_as_root() {
	[ "$(id -u)" -ne 0 ] || return 0
	if command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
		echo sudo
		return 0
	fi
	echo "These Debian packages are missing, and there is no way to become root here. Run as root:" >&2
	echo "  apt-get update && apt-get install -y --no-install-recommends $1" >&2
	return 1
}

# Waits while another apt-get works: DPkg::Lock::Timeout covers dpkg's lock, not the one of the package lists.
_packages_apt() {
	_tries=60
	while :; do
		_rc=0
		_said=$($_as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -o DPkg::Lock::Timeout=300 "$@" </dev/null 2>&1) || _rc=$?
		case $_rc:$_said in
		0:*) ;;
		*"Could not get lock"*)
			_tries=$((_tries - 1))
			if [ "$_tries" -gt 0 ]; then
				sleep 2
				continue
			fi
			;;
		esac
		printf '%s\n' "$_said"
		return "$_rc"
	done
}

# Debian packages start their daemons when installed, unless policy-rc.d says no. Ours says no only while this
# process lives, so that being killed half-way cannot leave a machine whose services do not start.
_packages_hold_daemons() {
	_policy=/usr/sbin/policy-rc.d
	[ ! -e "$_policy" ] || grep -qs 'made by sonde' "$_policy" || {
		_policy=
		return 0
	}
	# shellcheck disable=SC2016 # $1 is for the inner sh
	printf '#!/bin/sh\n# made by sonde (scripts/packages.sh) while it installs\n[ ! -d /proc/%s ] || exit 101\n' "$$" |
		$_as_root sh -c 'cat >"$1" && chmod 755 "$1"' sh "$_policy"
}

_packages_release_daemons() {
	[ -z "$_policy" ] || $_as_root rm -f "$_policy"
}
