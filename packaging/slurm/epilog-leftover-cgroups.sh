#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# An Epilog for slurm.conf: removes the cgroup directories that a job has left behind on this node, v1 and v2.
#   Epilog=/usr/share/sonde/slurm/epilog-leftover-cgroups.sh
# Slurm removes them itself. It fails to when a process outlives the job for a moment, or when slurmstepd was killed; then
# they stay until the next boot, each a directory that every look at the hierarchy has to pass. sonde agent counts them in
# sonde_agent_leftover_cgroups.
#
# Only directories of this job on this node are touched, and only if no process is left anywhere in them; the kernel
# would not let go of another anyway. The user's directory above stays: another job may be about to begin in it. Whatever
# happens, the exit status is 0: a failing Epilog drains the node.
trap 'exit 0' EXIT
PATH=/usr/sbin:/usr/bin:/sbin:/bin
export PATH

root=${SONDE_CGROUP_ROOT:-/sys/fs/cgroup}
job=${SLURM_JOB_ID-} uid=${SLURM_JOB_UID-} node=${SLURMD_NODENAME-} sluid=${SLURM_JOB_SLUID-}

# What becomes part of a path is made of what such a name is made of, or is not used.
case $job in '' | *[!0-9]*) exit 0 ;; esac
case $uid in *[!0-9]*) uid= ;; esac
case $node in *[!A-Za-z0-9._-]* | .*) node= ;; esac
case $sluid in *[!0-9A-Za-z]*) sluid= ;; esac

# True if the directory is a cgroup without a process in it or below.
is_empty() {
	[ -f "$1/cgroup.procs" ] && [ ! -L "$1" ] || return 1
	if [ -f "$1/cgroup.events" ]; then
		grep -qx 'populated 0' "$1/cgroup.events"
	else
		[ -z "$(find "$1" -xdev -name cgroup.procs -type f -exec cat {} + 2>/dev/null | head -n 1)" ]
	fi
}

clean() {
	[ -d "$1" ] || return 0
	if is_empty "$1"; then
		find "$1" -xdev -depth -type d -exec rmdir {} \; 2>/dev/null
	else
		logger -t sonde-epilog "job $job: processes are left in $1" 2>/dev/null
	fi
}

# v1: one hierarchy for each controller; slurm_NODE where several slurmds share the host.
if [ -n "$uid" ]; then
	for hierarchy in "$root"/*/; do
		clean "${hierarchy}slurm/uid_$uid/job_$job"
		[ -z "$node" ] || clean "${hierarchy}slurm_$node/uid_$uid/job_$job"
	done
fi

# v2, also beside v1. From 26.05 on, the directory has the job's SLUID for its name.
for hierarchy in "$root" "$root/unified"; do
	for scope in slurmstepd.scope ${node:+"${node}_slurmstepd.scope"}; do
		for name in "job_$job" ${sluid:+"$sluid"}; do
			clean "$hierarchy/system.slice/$scope/$name"
		done
	done
done
