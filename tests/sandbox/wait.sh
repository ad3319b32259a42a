# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by cluster and seed: waiting for conditions with a deadline, and failing with the log that tells why.
# Expects $state, $log and $run; lives() comes from here too.
# shellcheck shell=sh disable=SC2154

# within SECONDS CONDITION...: polls until the command succeeds; false at the deadline.
within() {
	_deadline=$(($(date +%s) + $1))
	shift
	until "$@" >/dev/null 2>&1; do
		[ "$(date +%s)" -lt "$_deadline" ] || return 1
		sleep 0.1
	done
}

# await SECONDS WHAT DAEMON CONDITION...: the same, but ends the script, at once if the daemon has ended.
await() {
	_seconds=$1 _what=$2 _daemon=$3
	shift 3
	_deadline=$(($(date +%s) + _seconds))
	until "$@" >"$log/await.out" 2>&1; do
		lives "$(cat "$run/$_daemon.pid")" || fail "$_daemon has ended while waiting for: $_what" "$_daemon"
		[ "$(date +%s)" -lt "$_deadline" ] || fail "$_seconds s were not enough for: $_what ($* said: $(tail -n 2 "$log/await.out"))" "$_daemon"
		sleep 0.1
	done
}

# A zombie is dead: where process 1 reaps late, kill -0 would still find it.
lives() {
	case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in
	'' | Z* | X*) return 1 ;;
	esac
}

# fail SENTENCE NAME: shows the last lines of the logs of NAME, by the path that they have for the caller of ./sandbox.
fail() {
	echo "sandbox: $1" >&2
	_file=$log/$2.out
	# Slurm's daemons log to a file as well, and only there once they have read their configuration.
	[ -s "$_file" ] || _file=$log/$2.log
	if [ -s "$_file" ]; then
		echo "The last lines of $SANDBOX_STATE/log/${_file##*/}:" >&2
		tail -n 15 "$_file" | sed 's/^/  /' >&2
	fi
	exit 1
}
