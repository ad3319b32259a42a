# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by ./sandbox, cluster and seed: waiting for conditions, and failing with the log that has the reason.
# await and fail expect $log and $run.
# shellcheck shell=sh disable=SC2154

# Seconds after which a wait has failed. It only bounds a hang: a busy machine may need most of it.
patience=300

# within CONDITION...: tries until the command succeeds; false at the deadline. What is waited for (a daemon that answers, a
# state of Slurm's) has no event that a shell could sleep on.
within() {
	read_uptime
	_end=$((_uptime + patience))
	until "$@" >/dev/null 2>&1; do
		read_uptime
		[ "$_uptime" -lt "$_end" ] || return 1
		sleep 0.03
	done
}

# await WHAT DAEMON CONDITION...: the same, but ends the script at the deadline, or at once if the daemon has ended.
await() {
	_what=$1 _daemon=$2
	shift 2
	if ! within holds_or_ended "$_daemon" "$@"; then
		fail "$patience s were not enough for: $_what ($* said: $(tail -n 2 "$log/await.out"))" "$_daemon"
	fi
	is_running "$_daemon" || fail "$_daemon has ended while waiting for: $_what" "$_daemon"
}

holds_or_ended() {
	_of=$1
	shift
	"$@" >"$log/await.out" 2>&1 || ! is_running "$_of"
}

is_running() {
	{ read -r _pid <"$run/$1.pid"; } 2>/dev/null && lives "$_pid"
}

# A zombie is dead: where process 1 reaps late, kill -0 would still find it. Builtins only: called in loops.
lives() {
	{ read -r _stat <"/proc/$1/stat"; } 2>/dev/null || return 1
	case ${_stat##*) } in
	Z* | X*) return 1 ;;
	esac
}

read_uptime() {
	read -r _uptime _ </proc/uptime
	_uptime=${_uptime%.*}
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
