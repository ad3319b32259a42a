# SPDX-License-Identifier: GPL-2.0-or-later
# Sourced by ./sandbox: which cgroups of the machine Slurm can use, and their removal at the end.
# v1 is shared with other sandboxes (Slurm's paths are fixed); v2 is a tree of the sandbox's own.
# shellcheck shell=sh disable=SC2034,SC2154

# Leaves in $cgroup what Slurm can use here, and in $cgroup_why the reason if that is nothing.
detect_cgroups() {
	cgroup=none cgroup_root='' cgroup_why=''
	if [ -n "${SANDBOX_NO_CGROUP:-}" ]; then
		cgroup_why="SANDBOX_NO_CGROUP is set"
	elif [ -e /sys/fs/cgroup/cgroup.controllers ]; then
		detect_cgroup_v2
	else
		detect_cgroup_v1
	fi
}

detect_cgroup_v1() {
	for controller in freezer memory cpuacct; do
		dir=/sys/fs/cgroup/$controller
		# Slurm takes only a hierarchy's real root, which has this file; a container's has not.
		if [ ! -e "$dir/release_agent" ]; then
			cgroup_why="no cgroup v1 $controller hierarchy here"
			return
		fi
		if ! mkdir "$dir/sonde-probe.$$" 2>/dev/null; then
			cgroup_why="$dir is not writable"
			return
		fi
		rmdir "$dir/sonde-probe.$$"
	done
	cgroup=v1 cgroup_root=/sys/fs/cgroup
	claim_node_cgroups
	# Another sandbox of this release, by name or in another cache, may use the ids that are the same at each start.
	if [ -n "$name" ] || { [ -d /sys/fs/cgroup/freezer/slurm_c1 ] && [ -z "$(other_sandboxes)" ]; }; then
		first_job_id=$(unused_job_ids) || fail "cannot count job ids in $reserved"
	fi
}

# Prints the first of 5,000 ids that no other sandbox of this machine has, or had of late: Slurm names cgroups by job id, and
# an agent sees those of all sandboxes. Slurm's own ids end at 67,043,328. From another root directory the file is another
# one, hence the random start.
unused_job_ids() {
	(
		job_ids=$reserved/job-ids
		exec 8>>"$job_ids" || exit
		flock 8
		read -r count <"$job_ids" || count=$(($(od -An -N2 -tu2 /dev/urandom) % 13000))
		count=$(((count + 1) % 13000))
		echo "$count" >"$job_ids"
		echo $((1000001 + count * 5000))
	)
}

# A cgroup of our own, which a cgroup namespace makes the root for Slurm: systemd, whose tree this is, need not know.
detect_cgroup_v2() {
	cgroup_why="Slurm 20.11 knows only cgroup v1"
	[ "$suite" != bullseye ] || return 0
	cgroup_why="in cgroup v2 a sandbox needs namespaces"
	[ "$mode" = namespace ] || return 0
	for controller in cpu cpuset memory pids; do
		echo "+$controller" 2>/dev/null >/sys/fs/cgroup/cgroup.subtree_control || :
	done 2>/dev/null
	cgroup_why="no cgroups can be made in /sys/fs/cgroup"
	mkdir "$cgroup_v2" 2>/dev/null || return 0
	cgroup_why="no memory controller is to be had in $cgroup_v2"
	grep -qw memory "$cgroup_v2/cgroup.controllers" || return 0
	cgroup=v2 cgroup_root=$cgroup_v2 cgroup_why=''
}

cgroup_words() {
	say "$SANDBOX_CGROUP${SANDBOX_CGROUP_WHY:+ ($SANDBOX_CGROUP_WHY)}"
}

# Those of its processes, as paths below any hierarchy, such as /slurm_c1/uid_2001/job_5.
own_job_cgroups() {
	own_pids | sed 's|.*|/proc/&/cgroup|' | xargs -r cat 2>/dev/null |
		sed -n 's|^[^:]*:[^:]*:\(/slurm_[^/]*/uid_[^/]*/job_[^/]*\).*|\1|p' | sort -u
}

# Those whose job ids are no other sandbox's, whatever has become of their processes.
numbered_job_cgroups() {
	first=$(sed -n 's/^SANDBOX_FIRST_JOB_ID=//p' "$state/env" 2>/dev/null)
	[ "${first:-0}" -gt 1000000 ] || return 0
	find /sys/fs/cgroup/*/slurm_* -mindepth 2 -maxdepth 2 -name 'job_*' 2>/dev/null |
		awk -F/ -v first="$first" '{ id = substr($NF, 5) + 0 } id >= first && id < first + 5000 { print "/" $(NF-2) "/" $(NF-1) "/" $NF }'
}

# A job that Slurm has suspended is frozen, and a frozen process does not die.
thaw() {
	for job in $1; do
		find "/sys/fs/cgroup/freezer$job" -name freezer.state -exec sh -c 'echo THAWED >"$1"' sh {} \; 2>/dev/null || :
	done
}

# Writes down the nodes whose directories are not there yet: our slurmd will make them, and only those may be removed. Any
# other belongs to a sandbox of another cache, or to a real node of that name. Of all sandboxes in one file: which of them is
# the last to end is not known.
claim_node_cgroups() {
	for node in $nodes; do
		ls -d /sys/fs/cgroup/*/"slurm_$node" >/dev/null 2>&1 || echo "$node"
	done >>"$cache/sandbox/node-cgroups"
}

# The job directories of this sandbox, then those of its nodes, unless another sandbox shares them: its jobs may be just
# about to start.
remove_cgroups() {
	for job in $1; do remove_in_hierarchies "$job"; done
	remove_cgroup "$cgroup_v2"
	[ -e "$cache/sandbox/node-cgroups" ] && [ -z "$(other_sandboxes)" ] || return 0
	sort -u "$cache/sandbox/node-cgroups" | while read -r node; do
		# Of a process in another pid namespace nothing is to be seen here; but the kernel keeps its directory.
		[ -n "$(find /sys/fs/cgroup/*/"slurm_$node" -name cgroup.procs -exec cat {} + 2>/dev/null)" ] ||
			find /sys/fs/cgroup/*/"slurm_$node" -depth -type d -exec rmdir {} \; 2>/dev/null || :
	done
	rm -f "$cache/sandbox/node-cgroups"
}

remove_in_hierarchies() {
	for directory in /sys/fs/cgroup/*"$1"; do remove_cgroup "$directory"; done
}

other_sandboxes() {
	find "$cache/sandbox" -maxdepth 3 -path '*/state/init' ! -path "$state/*" 2>/dev/null
}

# Processes leave a cgroup a little after their end: until then rmdir says busy.
remove_cgroup() {
	within cgroup_is_gone "$1" || fail "a cgroup does not go away: $1"
}

cgroup_is_gone() {
	[ ! -d "$1" ] || find "$1" -depth -type d -exec rmdir {} \;
	[ ! -d "$1" ]
}
