# SPDX-License-Identifier: GPL-2.0-or-later
"""What every family of the exporter must say when Slurm says what is in slurm.Facts and slurm.Diag.

FAMILIES has a row for each, OF_MILA for those of that profile: how its labels are called, and a function that computes all of its series from the facts,
as {values of the labels: value}. A new family needs a row here.
"""
import collections
import math
import re

from slurm import seconds, tres
from sonde import wait_until


class Exact:
    """The very number, where Slurm gives the same answers before and after the scrape."""

    def __init__(self, labels, of):
        self.labels, self.of = tuple(labels.split()), of

    def has_moved(self, before, after):
        return self.of(before) != self.of(after)

    def limits(self, before, _):
        return {series: (value, value) for series, value in self.of(before).items()}


class Between(Exact):
    """What grows by itself, or by our asking: between what Slurm says before and after, give or take."""

    def __init__(self, labels, of, slack=0):
        super().__init__(labels, of)
        self.slack = slack

    def has_moved(self, before, after):
        return self.of(before).keys() != self.of(after).keys()

    def limits(self, before, after):
        first, last = self.of(before), self.of(after)
        return {series: (min(first[series], last[series]) - self.slack, max(first[series], last[series]) + self.slack)
                for series in first}


class Since(Exact):
    """What is counted from sonde's first look on: the difference to what Slurm said around that look."""

    def limits(self, before, after):
        first = before.first_look
        least, most = self.of(first.before), self.of(first.after)
        now, later = self.of(before), self.of(after)
        return {series: (now[series] - most[series], later[series] - least[series]) for series in now}


class Within(Exact):
    """What cannot be known better than this: the function gives the limits, from the facts before and after."""

    def has_moved(self, before, after):
        return self.of(before, after).keys() != self.of(after, after).keys()

    def limits(self, before, after):
        return self.of(before, after)


def add_up(rows):
    sums = collections.Counter()
    for key, amount in rows:
        sums[key] += amount
    return dict(sums)


def only(value):
    """The series of a family without labels."""
    return {(): value}


# Jobs.

# squeue(1), JOB STATE CODES
JOB_STATES = """BOOT_FAIL CANCELLED COMPLETED CONFIGURING COMPLETING DEADLINE EXPEDITING FAILED NODE_FAIL OUT_OF_MEMORY
    PENDING PREEMPTED RUNNING RESV_DEL_HOLD REQUEUE_FED REQUEUE_HOLD REQUEUED RESIZING REVOKED SIGNALING SPECIAL_EXIT
    STAGE_OUT STOPPED SUSPENDED TIMEOUT UNKNOWN""".split()


def jobs(job):
    return job.tasks


def cpus(job):
    return job.tasks * job.tres["cpu"]


def cpus_in_use(job):
    """A suspended job has given its CPUs back, but nothing else."""
    return cpus(job) if job.state != "SUSPENDED" else 0


def memory(job):
    return job.tasks * job.tres["mem"]


def users(job):
    return [job.user]


def accounts(job):
    return [job.account]


def partitions(job):
    return job.partitions


def qos(job):
    return [job.qos]


def features(job):
    return job.features or [""]


def job_states(facts):
    return {**{(state,): 0 for state in JOB_STATES}, **add_up(((job.state,), job.tasks) for job in facts.jobs)}


def by_state(names, amount, is_wanted=lambda job: True):
    """Of users and accounts: what there is."""
    return lambda facts: add_up(((name, job.state), amount(job)) for job in facts.jobs if is_wanted(job) for name in names(job))


def all_names(names, facts):
    """What Slurm has, whether it has jobs or not."""
    if names is partitions:
        return [partition.name for partition in facts.partitions]
    return [row["Name"] for row in facts.qos]


def by_every_state(names, amount, is_wanted=lambda job: True):
    """Of partitions and QOS: also zero, of the states that some job is in."""
    def of(facts):
        states = {"PENDING", "RUNNING"} | {job.state for job in facts.jobs if is_wanted(job)}
        found = {(name, state): 0 for name in all_names(names, facts) for state in states}
        return {**found, **add_up(((name, job.state), amount(job)) for job in facts.jobs if is_wanted(job)
                                  for name in names(job))}
    return of


def is_live(job):
    return job.requests or job.holds


def gpus_by_every_state(names):
    """The same, of the types that the name's jobs have or had."""
    def of(facts):
        states = {"PENDING", "RUNNING"} | {job.state for job in facts.jobs if is_live(job)}
        found = {(name, gpu, state): 0 for job in facts.jobs for name in names(job) for gpu in job.gres["gpu"]
                 for state in states}
        return {**found, **add_up(((name, gpu, job.state), job.tasks * count) for job in facts.jobs if is_live(job)
                                  for name in names(job) for gpu, count in job.gres["gpu"].items())}
    return of


def held(names, amount):
    """By jobs that hold their resources; zero of users and accounts that have other jobs only."""
    def of(facts):
        found = {(name,): 0 for job in facts.jobs for name in names(job)} if names is not features else {}
        return {**found, **add_up(((name,), amount(job)) for job in facts.jobs if job.holds for name in names(job))}
    return of


def held_gres(names, kind):
    return lambda facts: add_up(((name, of_type), count) for job in facts.jobs if job.holds for name in names(job)
                                for of_type, count in job.gres[kind].items())


# Jobs that wait.

# as prometheus-slurm-exporter spells it
OLD_SPELLING = {"ReqNodeNotAvail, UnavailableNodes": "(ReqNodeNotAvail, UnavailableNodes)"}

# Of the reasons that the seed brings about, those for which neither job nor account is to blame.
CLUSTER_REASONS = {"None", "Resources", "Priority", "Licenses", "PartitionDown", "PartitionInactive", "Reservation",
                   "ReqNodeNotAvail, UnavailableNodes", "ReqNodeNotAvail, May be reserved for other job",
                   "ReqNodeNotAvail, Reserved for maintenance"}


def pending(facts):
    return [job for job in facts.jobs if job.is_pending]


def pending_reasons(facts):
    return add_up(((OLD_SPELLING.get(job.reason, job.reason),), job.tasks) for job in pending(facts))


def by_reason(names, amount):
    return lambda facts: add_up(((name, job.reason), amount(job)) for job in pending(facts) for name in names(job))


def pending_gpus(facts):
    return add_up(((name, gpu, job.reason), job.tasks * count) for job in pending(facts) for name in job.partitions
                  for gpu, count in job.gres["gpu"].items())


def waits(facts):
    """Seconds that jobs have waited for nothing but the cluster."""
    return [(job, int(facts.time) - max(job.submit, job.eligible)) for job in pending(facts)
            if job.reason in CLUSTER_REASONS and job.priority > 0 and 0 < job.eligible <= facts.time]


def oldest(facts):
    return only(max((wait for _, wait in waits(facts)), default=0))


def oldest_of_partitions(facts):
    return {(name,): max((wait for job, wait in waits(facts) if name in job.partitions), default=0)
            for name in all_names(partitions, facts)}


# Nodes.

# sinfo(1), NODE STATE CODES
NODE_STATES = """allocated blocked cancel_reboot cloud completing down drained draining dynamic_future dynamic_norm
    error external fail failing future idle inval maint mixed planned power_down power_up powered_down powering_down
    powering_up reboot reserved resume undrain unknown""".split()
# slurm.h, enum node_states
NODE_BASES = "unknown down idle allocated error mixed future".split()
NODE_FLAGS = """blocked cloud completing drain dynamic_future dynamic_norm external fail invalid_reg maintenance
    not_responding planned power_down power_drain power_up powered_down powering_down powering_up reboot_canceled
    reboot_issued reboot_requested reserved resume undrain""".split()


def every_node(amount):
    return lambda facts: only(sum(amount(node) for node in facts.nodes))


def node_states(amount):
    return lambda facts: {**{(state,): 0 for state in NODE_STATES},
                          **add_up(((node.word,), amount(node)) for node in facts.nodes)}


def node_bases(facts):
    return {**{(base,): 0 for base in NODE_BASES}, **add_up(((node.base,), 1) for node in facts.nodes)}


def node_flags(facts):
    return {**{(flag,): 0 for flag in NODE_FLAGS},
            **add_up(((flag,), 1) for node in facts.nodes for flag in node.flags)}


def node_features(facts):
    return add_up(((feature,), 1) for node in facts.nodes for feature in node.features.split(","))


def each_node(value):
    return lambda facts: {(node.name,): value(node) for node in facts.nodes if value(node) is not None}


def partition_nodes(value, join=sum):
    return lambda facts: {(partition.name,): join([value(node) for node in facts.nodes
                                                   if partition.name in node.partitions])
                          for partition in facts.partitions}


def partition_node_states(amount):
    def of(facts):
        states = {node.word for node in facts.nodes}
        found = {(partition.name, state): 0 for partition in facts.partitions for state in states}
        return {**found, **add_up(((name, node.word), amount(node)) for node in facts.nodes
                                  for name in node.partitions)}
    return of


def load(nodes):
    return round(sum(nodes), 2)


# GPUs of nodes, and shards of them.

def gres_amount(node, kind, of_type, amount):
    count, allocated = node.gres[kind][of_type], node.gres_allocated[kind].get(of_type, 0)
    return {"all": count, "allocated": allocated,
            "idle": count - allocated if node.takes_jobs else 0,
            "unusable": 0 if node.takes_jobs else count - allocated}[amount]


def cluster_gres(kind, amount):
    return lambda facts: add_up(((of_type,), gres_amount(node, kind, of_type, amount))
                                for node in facts.nodes for of_type in node.gres[kind])


def partition_gres(kind, amount):
    return lambda facts: add_up(((name, of_type), gres_amount(node, kind, of_type, amount))
                                for node in facts.nodes for name in node.partitions for of_type in node.gres[kind])


def gres_states(kind):
    def of(facts):
        types = {of_type for node in facts.nodes for of_type in node.gres[kind]}
        found = {(node.word, of_type): 0 for node in facts.nodes for of_type in types}
        return {**found, **add_up(((node.word, of_type), count) for node in facts.nodes
                                  for of_type, count in node.gres[kind].items())}
    return of


# All GRES by name and type.

def gres_of_jobs(jobs, names):
    return add_up(((name, kind, of_type), count) for job in jobs for name in names(job) for kind in job.gres
                  for of_type, count in job.gres[kind].items())


def held_by_jobs(names):
    return lambda facts: gres_of_jobs([job for job in facts.jobs if job.holds], names)


def gres_by_every_state(names):
    """Of the names and types that the name's jobs have or had, also zero."""
    def of(facts):
        states = {"PENDING", "RUNNING"} | {job.state for job in facts.jobs if is_live(job)}
        found = {(*key, state): 0 for key in gres_of_jobs(facts.jobs, names) for state in states}
        return {**found, **add_up(((name, kind, of_type, job.state), job.tasks * count) for job in facts.jobs if is_live(job)
                                  for name in names(job) for kind in job.gres for of_type, count in job.gres[kind].items())}
    return of


def gres_of_nodes(amount, names=lambda node: [()]):
    return lambda facts: add_up(((*name, kind, of_type), gres_amount(node, kind, of_type, amount)) for node in facts.nodes
                                for name in names(node) for kind in node.gres for of_type in node.gres[kind])


def in_partitions(node):
    return [(name,) for name in node.partitions]


def itself(node):
    return [(node.name,)]


def all_gres_states(facts):
    kinds = gres_of_nodes("all")(facts)
    return {**{(node.word, *kind): 0 for node in facts.nodes for kind in kinds},
            **gres_of_nodes("all", lambda node: [(node.word,)])(facts)}


def node_gpus(amount):
    return lambda facts: {(node.name, gpu): gres_amount(node, "gpu", gpu, amount) for node in facts.nodes
                          for gpu in node.gres["gpu"]}


# What the cluster has, by the state and flags of its nodes and by use.

USES = ("allocated", "idle", "unusable")


def cpus_in(node, use):
    free = node.cpus - node.cpus_allocated
    return {"allocated": node.cpus_allocated, "idle": free if node.takes_jobs else 0,
            "unusable": 0 if node.takes_jobs else free}[use]


def cpus_by_use(facts):
    return {**{(state, use): 0 for state in NODE_STATES for use in USES},
            **add_up(((node.word, use), cpus_in(node, use)) for node in facts.nodes for use in USES)}


def gpu_types(facts):
    return {of_type for node in facts.nodes for of_type in node.gres["gpu"]}


def gpus_by_use(facts):
    return {**{(node.word, of_type, use): 0 for node in facts.nodes for of_type in gpu_types(facts) for use in USES},
            **add_up(((node.word, of_type, use), gres_amount(node, "gpu", of_type, use)) for node in facts.nodes
                     for of_type in node.gres["gpu"] for use in USES)}


def cpus_by_flag(facts):
    return {**{(flag,): 0 for flag in NODE_FLAGS},
            **add_up(((flag,), node.cpus) for node in facts.nodes for flag in node.flags)}


def gpus_by_flag(facts):
    return {**{(flag, of_type): 0 for flag in NODE_FLAGS for of_type in gpu_types(facts)},
            **add_up(((flag, of_type), count) for node in facts.nodes for flag in node.flags
                     for of_type, count in node.gres["gpu"].items())}


def free_gpus(node):
    return sum(gres_amount(node, "gpu", of_type, "idle") for of_type in node.gres["gpu"])


def stranded_cpus(facts):
    return only(sum(cpus_in(node, "idle") for node in facts.nodes if node.gres["gpu"] and not free_gpus(node)))


def stranded_gpus(facts):
    full = [node for node in facts.nodes
            if not cpus_in(node, "idle") or node.memory - node.memory_allocated < 1 << 20]
    return {**{(of_type,): 0 for of_type in gpu_types(facts)},
            **add_up(((of_type,), gres_amount(node, "gpu", of_type, "idle")) for node in full
                     for of_type in node.gres["gpu"])}


# Licences and reservations.

def licenses(value):
    return lambda facts: {(one.name,): value(one) for one in facts.licenses}


def remote_licenses(facts):
    """Nobody has told slurmdbd of any in use."""
    return {(one.name,): 0 for one in facts.licenses if one.is_remote and facts.release >= (23, 2)}


def reservations(value):
    return lambda facts: {(one.name,): value(one) for one in facts.reservations}


# Fair share.

def shares(column, is_of_users):
    """sshare leaves blank what there is none of."""
    def of(facts):
        found = {}
        for (account, user, partition), row in facts.shares.items():
            text = row[column]
            # no level has been computed yet
            if column == "LevelFS" and float(text or 0) == 0 and float(row["NormShares"]) > 0:
                text = ""
            if bool(user) == is_of_users and text:
                found[(account, user, partition) if user else (account,)] = float(text)
        return found
    return of


def raw_shares(is_of_users):
    """Of sacctmgr; the shares of root itself mean nothing, and sshare does not tell them."""
    return lambda facts: {one.key if one.user else (one.account,): int(one.row["Share"]) for one in facts.associations
                          if bool(one.user) == is_of_users and one.row["Share"] != "parent"
                          and (one.account, one.user) != ("root", "")}


def shares_of_parent(is_of_users):
    return lambda facts: {one.key if one.user else (one.account,): 1 for one in facts.associations
                          if bool(one.user) == is_of_users and one.row["Share"] == "parent"}


# Limits.

def used_jobs(counted):
    return sum(job.tasks for job in counted if job.holds)


def used_submitted(counted):
    return sum(job.tasks for job in counted if is_live(job))


def used_tres(counted, name):
    return sum(job.tres.get(name, 0) for job in counted if job.holds)


def jobs_of(facts, association):
    """A job is of its user in its partition if there is such an association, else of its user; and of its account and
    all those above."""
    keys = {one.key for one in facts.associations}
    for job in facts.jobs:
        partition = job.partitions[0] if (job.account, job.user, job.partitions[0]) in keys else ""
        if association.user and (job.account, job.user, partition) == association.key:
            yield job
        if not association.user and job.account in association.below:
            yield job


def association_limits(column, read=int):
    return lambda facts: {one.key: read(one.row[column]) for one in facts.associations if one.row[column]}


def association_used(column, used, is_of_users=False):
    """Of what is limited; a limit on each user of an account is used by the users."""
    return lambda facts: {one.key: used(list(jobs_of(facts, one))) for one in facts.associations
                          if one.row[column] and (one.user or not is_of_users)}


def association_tres_limits(column, scale=1):
    return lambda facts: {(*one.key, name): scale * amount for one in facts.associations
                          for name, amount in tres(one.row[column]).items()}


def association_tres_used(facts):
    return {(*one.key, name): used_tres(jobs_of(facts, one), name) for one in facts.associations
            for name in tres(one.row["GrpTRES"])}


def association_times_used(column, told):
    """sshare tells them in minutes, memory in MiB minutes."""
    return lambda facts: {(*one.key, name): 60 * tres(facts.shares[one.key][told])[name]
                          for one in facts.associations for name in tres(one.row[column])}


def wall_used(facts):
    return {one.key: round(60 * float(facts.used_minutes[one.key]["GrpWall"])) for one in facts.associations
            if one.row["GrpWall"]}


def account_limits(column, read):
    return lambda facts: {(one.account,): read(one.row[column]) for one in facts.associations
                          if not one.user and one.row[column] and read(one.row[column]) is not None}


def qos_jobs(facts, name):
    return [job for job in facts.jobs if job.qos == name and is_live(job)]


def is_told(facts, row, is_of_users):
    """A limit of each user of a QOS is told once there is such a user."""
    return not is_of_users or facts.used_minutes[row["Name"],]["tells_of_users"]


def qos_limits(column, is_of_users=False, read=int):
    return lambda facts: {(row["Name"],): read(row[column]) for row in facts.qos
                          if row[column] and is_told(facts, row, is_of_users)}


def qos_used(column, used):
    return lambda facts: {(row["Name"],): used(qos_jobs(facts, row["Name"])) for row in facts.qos if row[column]}


def of_the_user_with_most(used, counted):
    owners = {job.user for job in counted}
    return max((used([job for job in counted if job.user == user]) for user in owners), default=0)


def qos_user_used(column, used):
    return lambda facts: {series: of_the_user_with_most(used, qos_jobs(facts, *series))
                          for series in qos_limits(column, True)(facts)}


def qos_tres_limits(column, is_of_users=False, scale=1):
    return lambda facts: {(row["Name"], name): scale * amount for row in facts.qos
                          if is_told(facts, row, is_of_users)
                          for name, amount in tres(row[column]).items()}


def qos_tres_used(facts):
    return {(name, what): used_tres(qos_jobs(facts, name), what) for name, what in qos_tres_limits("GrpTRES")(facts)}


def qos_user_tres_used(facts):
    return {(name, what): of_the_user_with_most(lambda counted: used_tres(counted, what), qos_jobs(facts, name))
            for name, what in qos_tres_limits("MaxTRESPU", True)(facts)}


def qos_wall_used(facts):
    return {(row["Name"],): round(60 * float(facts.used_minutes[row["Name"],]["GrpWall"])) for row in facts.qos
            if row["GrpWall"]}


def qos_times_used(column):
    def of(facts):
        found = {}
        for name, what in qos_tres_limits(column)(facts):
            minutes = int(facts.used_minutes[name,][column][what])
            found[name, what] = 60 * minutes * (1 << 20 if what == "mem" else 1)
        return found
    return of


# The scheduler's statistics.

def told(label, block="top"):
    return lambda diag: only(getattr(diag, block)[label])


def schedulers(label, other_label=None, scale=1):
    """Of both; in backfill's block a thing may be called otherwise, or not be there."""
    def of(diag):
        found = {("main",): diag.main.get(label), ("backfill",): diag.backfill.get(other_label or label)}
        return {series: value * scale for series, value in found.items() if value is not None}
    return of


def exits(diag):
    return {(scheduler, reason): count for scheduler, of in (("main", diag.main_exits),
                                                             ("backfill", diag.backfill_exits))
            for reason, count in of.items()}


def requests(of, what, scale=1):
    return lambda diag: {(name,): numbers[what] * scale for name, numbers in getattr(diag, of).items()}


def request_means(before, after):
    """In whole microseconds."""
    last = after.types
    return {(name,): (numbers["total"] // last[name]["count"], last[name]["total"] // numbers["count"])
            for name, numbers in before.types.items() if name in last}


def threads(before, after):
    """One serves sonde's own request; how many there are else nobody can ask without being one."""
    return only((1, 256))


def queue(before, after):
    """Messages to others come and go between two readings. Tests of the readers compare the numbers."""
    return only((0, 10000))


def told_nowhere(_):
    """Of what sdiag tells in JSON only, or where slurmctld queues requests: not here."""
    return {}


# sonde itself.

def milliseconds(before, after):
    return only((0, math.inf))


def no_error(_):
    return only(0)


def reservation_of(facts, node):
    """The first active one that has the node; Slurm says whether there is one."""
    names = [one.name for one in facts.reservations if one.is_active and node.name in one.nodes]
    return names[0] if "reserved" in node.flags else "None"


def nothing_yet(_):
    """It tells of what happens from its first look on; there are tests that make it happen."""
    return {}


USEC = 1e-6
ROUNDING = 1e-9  # a microsecond in seconds is not exact in binary
OF_ASSOCIATION = "account user partition"

OF_FACTS = {
    "slurm_job_count_per_state": Exact("state", job_states),
    "slurm_pending_reason_total": Exact("reason", pending_reasons),

    "slurm_user_state_total": Exact("username state", by_state(users, jobs)),
    "slurm_user_cpu_alloc": Exact("username state", by_state(users, cpus_in_use, is_live)),
    "slurm_user_mem_alloc": Exact("username state", by_state(users, memory, is_live)),
    "slurm_user_gpus_allocated": Exact("user type", held_gres(users, "gpu")),
    "slurm_user_gpu_shards_allocated": Exact("user type", held_gres(users, "shard")),
    "slurm_user_gres_allocated": Exact("user gres type", held_by_jobs(users)),

    "slurm_account_job_state_total": Exact("account state", by_state(accounts, jobs)),
    "slurm_account_job_state_cpu_alloc": Exact("account state", by_state(accounts, cpus_in_use, is_live)),
    "slurm_account_job_state_mem_alloc": Exact("account state", by_state(accounts, memory, is_live)),
    "slurm_account_cpu_alloc": Exact("account", held(accounts, cpus_in_use)),
    "slurm_account_mem_alloc": Exact("account", held(accounts, memory)),
    "slurm_account_gpus_allocated": Exact("account type", held_gres(accounts, "gpu")),
    "slurm_account_gpu_shards_allocated": Exact("account type", held_gres(accounts, "shard")),
    "slurm_account_gres_allocated": Exact("account gres type", held_by_jobs(accounts)),

    "slurm_partition_job_state_total": Exact("partition state", by_every_state(partitions, jobs)),
    "slurm_partition_job_cpus": Exact("partition state", by_every_state(partitions, cpus_in_use, is_live)),
    "slurm_partition_job_memory_bytes": Exact("partition state", by_every_state(partitions, memory, is_live)),
    "slurm_partition_job_gpus": Exact("partition type state", gpus_by_every_state(partitions)),
    "slurm_partition_job_gres": Exact("partition gres type state", gres_by_every_state(partitions)),

    "slurm_qos_jobs": Exact("qos state", by_every_state(qos, jobs)),
    "slurm_qos_job_cpus": Exact("qos state", by_every_state(qos, cpus_in_use, is_live)),
    "slurm_qos_job_memory_bytes": Exact("qos state", by_every_state(qos, memory, is_live)),
    "slurm_qos_job_gpus": Exact("qos type state", gpus_by_every_state(qos)),
    "slurm_qos_job_gres": Exact("qos gres type state", gres_by_every_state(qos)),

    "slurm_feature_total": Exact("feature", held(features, jobs)),
    "slurm_feature_cpu_alloc": Exact("feature", held(features, cpus_in_use)),
    "slurm_feature_mem_alloc": Exact("feature", held(features, memory)),

    "slurm_partition_pending_jobs": Exact("partition reason", by_reason(partitions, jobs)),
    "slurm_partition_pending_cpus": Exact("partition reason", by_reason(partitions, cpus)),
    "slurm_partition_pending_gpus": Exact("partition type reason", pending_gpus),
    "slurm_account_pending_jobs": Exact("account reason", by_reason(accounts, jobs)),
    "slurm_qos_pending_jobs": Exact("qos reason", by_reason(qos, jobs)),
    "slurm_pending_oldest_age_seconds": Between("", oldest, slack=1),
    "slurm_partition_pending_oldest_age_seconds": Between("partition", oldest_of_partitions, slack=1),
    "slurm_job_wait_seconds": Exact("partition", nothing_yet),

    "slurm_cpus_total": Exact("", lambda facts: only(facts.cpus)),
    "slurm_cpus_idle": Exact("", lambda facts: only(facts.cpus_idle)),
    "slurm_cpu_load": Exact("", lambda facts: only(load(node.load for node in facts.nodes))),
    "slurm_cpus_per_state": Exact("state", node_states(lambda node: node.cpus)),
    "slurm_node_count_per_state": Exact("state", node_states(lambda node: 1)),
    "slurm_mem_real": Exact("", every_node(lambda node: node.memory)),
    "slurm_mem_free": Exact("", every_node(lambda node: node.memory_free)),
    "slurm_mem_alloc": Exact("", every_node(lambda node: node.memory_allocated)),
    "slurm_nodes": Exact("state", node_bases),
    "slurm_nodes_flagged": Exact("flag", node_flags),
    "slurm_feature_nodes": Exact("feature", node_features),

    "slurm_partition_total_cpus": Exact("partition", lambda facts: {(one.name,): one.cpus for one in facts.partitions}),
    "slurm_partition_idle_cpus": Exact("partition", lambda facts: {(one.name,): one.idle for one in facts.partitions}),
    "slurm_partition_cpu_load": Exact("partition", partition_nodes(lambda node: node.load, load)),
    "slurm_partition_real_mem": Exact("partition", partition_nodes(lambda node: node.memory)),
    "slurm_partition_free_mem": Exact("partition", partition_nodes(lambda node: node.memory_free)),
    "slurm_partition_weight": Exact("partition", partition_nodes(lambda node: node.weight)),
    "slurm_partition_weight_min": Exact("partition", partition_nodes(lambda node: node.weight, min)),
    "slurm_partition_weight_max": Exact("partition", partition_nodes(lambda node: node.weight, max)),
    "slurm_partition_up": Exact("partition", lambda facts: {(one.name,): one.is_up for one in facts.partitions}),
    "slurm_partition_time_limit_seconds": Exact("partition", lambda facts: {
        (one.name,): one.seconds for one in facts.partitions if one.seconds}),
    "slurm_partition_alloc_cpus": Exact("partition state", partition_node_states(lambda node: node.cpus_allocated)),
    "slurm_partition_alloc_mem": Exact("partition state", partition_node_states(lambda node: node.memory_allocated)),
    "slurm_partition_node_count": Exact("partition state", partition_node_states(lambda node: 1)),

    "slurm_node_info": Exact("node features version", lambda facts: {
        (node.name, node.features, node.version): 1 for node in facts.nodes}),
    "slurm_node_state": Exact("node state", lambda facts: {(node.name, node.base): 1 for node in facts.nodes}),
    "slurm_node_flag": Exact("node flag", lambda facts: {
        (node.name, flag): 1 for node in facts.nodes for flag in node.flags}),
    "slurm_node_reason_info": Exact("node reason user", lambda facts: {
        (node.name, node.reason, node.reason_user): 1 for node in facts.nodes if node.reason}),
    "slurm_node_reason_time_seconds": Exact("node", each_node(lambda node: node.reason_time and int(node.reason_time))),
    "slurm_node_cpus": Exact("node", each_node(lambda node: node.cpus)),
    "slurm_node_cpus_allocated": Exact("node", each_node(lambda node: node.cpus_allocated)),
    "slurm_node_cpu_load": Exact("node", each_node(lambda node: node.load)),
    "slurm_node_memory_bytes": Exact("node", each_node(lambda node: node.memory)),
    "slurm_node_memory_allocated_bytes": Exact("node", each_node(lambda node: node.memory_allocated)),
    "slurm_node_gpus": Exact("node type", node_gpus("all")),
    "slurm_node_gpus_allocated": Exact("node type", node_gpus("allocated")),
    "slurm_node_gres": Exact("node gres type", gres_of_nodes("all", itself)),
    "slurm_node_gres_allocated": Exact("node gres type", gres_of_nodes("allocated", itself)),

    "slurm_gpus": Exact("type", cluster_gres("gpu", "all")),
    "slurm_gpus_allocated": Exact("type", cluster_gres("gpu", "allocated")),
    "slurm_gpus_idle": Exact("type", cluster_gres("gpu", "idle")),
    "slurm_gpus_unusable": Exact("type", cluster_gres("gpu", "unusable")),
    "slurm_partition_gpus": Exact("partition type", partition_gres("gpu", "all")),
    "slurm_partition_gpus_allocated": Exact("partition type", partition_gres("gpu", "allocated")),
    "slurm_partition_gpus_idle": Exact("partition type", partition_gres("gpu", "idle")),
    "slurm_partition_gpus_unusable": Exact("partition type", partition_gres("gpu", "unusable")),
    "slurm_gpus_per_state": Exact("state type", gres_states("gpu")),
    "slurm_gpu_shards": Exact("type", cluster_gres("shard", "all")),
    "slurm_gpu_shards_allocated": Exact("type", cluster_gres("shard", "allocated")),
    "slurm_gpu_shards_idle": Exact("type", cluster_gres("shard", "idle")),
    "slurm_gpu_shards_unusable": Exact("type", cluster_gres("shard", "unusable")),
    "slurm_partition_gpu_shards": Exact("partition type", partition_gres("shard", "all")),
    "slurm_partition_gpu_shards_allocated": Exact("partition type", partition_gres("shard", "allocated")),
    "slurm_partition_gpu_shards_idle": Exact("partition type", partition_gres("shard", "idle")),
    "slurm_partition_gpu_shards_unusable": Exact("partition type", partition_gres("shard", "unusable")),
    "slurm_gpu_shards_per_state": Exact("state type", gres_states("shard")),
    "slurm_gres": Exact("gres type", gres_of_nodes("all")),
    "slurm_gres_allocated": Exact("gres type", gres_of_nodes("allocated")),
    "slurm_gres_idle": Exact("gres type", gres_of_nodes("idle")),
    "slurm_gres_unusable": Exact("gres type", gres_of_nodes("unusable")),
    "slurm_partition_gres": Exact("partition gres type", gres_of_nodes("all", in_partitions)),
    "slurm_partition_gres_allocated": Exact("partition gres type", gres_of_nodes("allocated", in_partitions)),
    "slurm_partition_gres_idle": Exact("partition gres type", gres_of_nodes("idle", in_partitions)),
    "slurm_partition_gres_unusable": Exact("partition gres type", gres_of_nodes("unusable", in_partitions)),
    "slurm_gres_per_state": Exact("state gres type", all_gres_states),
    "slurm_job_gres_allocated": Exact("job_id gres type", held_by_jobs(lambda job: [str(job.id)])),

    "slurm_state_cpus": Exact("state use", cpus_by_use),
    "slurm_state_gpus": Exact("state type use", gpus_by_use),
    "slurm_flag_cpus": Exact("flag", cpus_by_flag),
    "slurm_flag_gpus": Exact("flag type", gpus_by_flag),
    "slurm_stranded_cpus": Exact("", stranded_cpus),
    "slurm_stranded_gpus": Exact("type", stranded_gpus),
    "slurm_node_reservation_info": Exact("node reservation", lambda facts: {
        (node.name, reservation_of(facts, node)): 1 for node in facts.nodes if "reserved" in node.flags}),

    "slurm_lic_total": Exact("name", licenses(lambda one: one.total)),
    "slurm_lic_used": Exact("name", licenses(lambda one: one.held)),
    "slurm_lic_free": Exact("name", licenses(lambda one: one.total - one.held)),
    "slurm_lic_reserved": Exact("name", licenses(lambda one: one.reserved)),
    "slurm_lic_last_consumed": Exact("name", remote_licenses),
    "slurm_lic_last_deficit": Exact("name", remote_licenses),

    "slurm_reservation_info": Exact("reservation users accounts partition flags", lambda facts: {
        (one.name, one.users, one.accounts, one.partition, one.flags): 1 for one in facts.reservations}),
    "slurm_reservation_active": Exact("reservation", reservations(lambda one: one.is_active)),
    "slurm_reservation_start_time_seconds": Exact("reservation", reservations(lambda one: one.start)),
    "slurm_reservation_end_time_seconds": Exact("reservation", reservations(lambda one: one.end)),
    "slurm_reservation_nodes": Exact("reservation", reservations(lambda one: len(one.nodes))),
    "slurm_reservation_cores": Exact("reservation", reservations(lambda one: one.cores)),
    "slurm_reservation_node_info": Exact("reservation node", lambda facts: {
        (one.name, node): 1 for one in facts.reservations for node in one.nodes}),

    # usage is computed once in PriorityCalcPeriod and stands still between
    "slurm_account_fairshare_raw_shares": Exact("account", raw_shares(False)),
    "slurm_account_fairshare_norm_shares": Exact("account", shares("NormShares", False)),
    "slurm_account_fairshare_uses_parent": Exact("account", shares_of_parent(False)),
    "slurm_account_fairshare_raw_usage": Exact("account", shares("RawUsage", False)),
    "slurm_account_fairshare_norm_usage": Exact("account", shares("NormUsage", False)),
    "slurm_account_fairshare_effective_usage": Exact("account", shares("EffectvUsage", False)),
    "slurm_account_fairshare_factor": Exact("account", shares("FairShare", False)),
    "slurm_account_fairshare_level": Exact("account", shares("LevelFS", False)),
    "slurm_user_fairshare_raw_shares": Exact(OF_ASSOCIATION, raw_shares(True)),
    "slurm_user_fairshare_norm_shares": Exact(OF_ASSOCIATION, shares("NormShares", True)),
    "slurm_user_fairshare_uses_parent": Exact(OF_ASSOCIATION, shares_of_parent(True)),
    "slurm_user_fairshare_raw_usage": Exact(OF_ASSOCIATION, shares("RawUsage", True)),
    "slurm_user_fairshare_norm_usage": Exact(OF_ASSOCIATION, shares("NormUsage", True)),
    "slurm_user_fairshare_effective_usage": Exact(OF_ASSOCIATION, shares("EffectvUsage", True)),
    "slurm_user_fairshare_factor": Exact(OF_ASSOCIATION, shares("FairShare", True)),
    "slurm_user_fairshare_level": Exact(OF_ASSOCIATION, shares("LevelFS", True)),

    "slurm_account_cpu_limit": Exact("account", account_limits("GrpTRES", lambda text: tres(text).get("cpu"))),
    "slurm_account_mem_limit": Exact("account", account_limits("GrpTRES", lambda text: tres(text).get("mem"))),
    "slurm_account_job_alloc_limit": Exact("account", account_limits("GrpJobs", int)),
    "slurm_account_job_limit": Exact("account", account_limits("GrpSubmit", int)),
    "slurm_association_jobs_limit": Exact(OF_ASSOCIATION, association_limits("GrpJobs")),
    "slurm_association_jobs_used": Exact(OF_ASSOCIATION, association_used("GrpJobs", used_jobs)),
    "slurm_association_submitted_jobs_limit": Exact(OF_ASSOCIATION, association_limits("GrpSubmit")),
    "slurm_association_submitted_jobs_used": Exact(OF_ASSOCIATION, association_used("GrpSubmit", used_submitted)),
    "slurm_association_wall_limit_seconds": Exact(OF_ASSOCIATION, association_limits("GrpWall", seconds)),
    "slurm_association_wall_used_seconds": Exact(OF_ASSOCIATION, wall_used),
    "slurm_association_tres_limit": Exact(OF_ASSOCIATION + " tres", association_tres_limits("GrpTRES")),
    "slurm_association_tres_used": Exact(OF_ASSOCIATION + " tres", association_tres_used),
    "slurm_association_tres_time_limit_seconds": Exact(
        OF_ASSOCIATION + " tres", association_tres_limits("GrpTRESMins", 60)),
    "slurm_association_tres_time_used_seconds": Exact(
        OF_ASSOCIATION + " tres", association_times_used("GrpTRESMins", "GrpTRESRaw")),
    "slurm_association_running_tres_time_limit_seconds": Exact(
        OF_ASSOCIATION + " tres", association_tres_limits("GrpTRESRunMins", 60)),
    "slurm_association_running_tres_time_used_seconds": Exact(
        OF_ASSOCIATION + " tres", association_times_used("GrpTRESRunMins", "TRESRunMins")),
    "slurm_association_user_jobs_limit": Exact(OF_ASSOCIATION, association_limits("MaxJobs")),
    "slurm_association_user_jobs_used": Exact(OF_ASSOCIATION, association_used("MaxJobs", used_jobs, True)),
    "slurm_association_user_submitted_jobs_limit": Exact(OF_ASSOCIATION, association_limits("MaxSubmit")),
    "slurm_association_user_submitted_jobs_used": Exact(
        OF_ASSOCIATION, association_used("MaxSubmit", used_submitted, True)),

    "slurm_qos_jobs_limit": Exact("qos", qos_limits("GrpJobs")),
    "slurm_qos_jobs_used": Exact("qos", qos_used("GrpJobs", used_jobs)),
    "slurm_qos_submitted_jobs_limit": Exact("qos", qos_limits("GrpSubmit")),
    "slurm_qos_submitted_jobs_used": Exact("qos", qos_used("GrpSubmit", used_submitted)),
    "slurm_qos_wall_limit_seconds": Exact("qos", qos_limits("GrpWall", read=seconds)),
    "slurm_qos_wall_used_seconds": Exact("qos", qos_wall_used),
    "slurm_qos_tres_limit": Exact("qos tres", qos_tres_limits("GrpTRES")),
    "slurm_qos_tres_used": Exact("qos tres", qos_tres_used),
    "slurm_qos_tres_time_limit_seconds": Exact("qos tres", qos_tres_limits("GrpTRESMins", scale=60)),
    "slurm_qos_tres_time_used_seconds": Exact("qos tres", qos_times_used("GrpTRESMins")),
    "slurm_qos_running_tres_time_limit_seconds": Exact("qos tres", qos_tres_limits("GrpTRESRunMins", scale=60)),
    "slurm_qos_running_tres_time_used_seconds": Exact("qos tres", qos_times_used("GrpTRESRunMins")),
    "slurm_qos_user_jobs_limit": Exact("qos", qos_limits("MaxJobsPU", True)),
    "slurm_qos_user_jobs_used": Exact("qos", qos_user_used("MaxJobsPU", used_jobs)),
    "slurm_qos_user_submitted_jobs_limit": Exact("qos", qos_limits("MaxSubmitPU", True)),
    "slurm_qos_user_submitted_jobs_used": Exact("qos", qos_user_used("MaxSubmitPU", used_submitted)),
    "slurm_qos_user_tres_limit": Exact("qos tres", qos_tres_limits("MaxTRESPU", True)),
    "slurm_qos_user_tres_used": Exact("qos tres", qos_user_tres_used),

    "slurm_config_info": Exact("cluster_name version", lambda facts: {(facts.cluster, facts.version): 1}),

    # cli does not tell: test_doors.py
    "slurm_job_gpu_allocated": Exact("job_id node gpu", nothing_yet),

    "slurm_proc_cpu_usage": Exact("jobid username", nothing_yet),
    "slurm_proc_mem_usage": Exact("jobid username", nothing_yet),
    "slurm_proc_read_bytes": Exact("jobid username", nothing_yet),
    "slurm_proc_write_bytes": Exact("jobid username", nothing_yet),
    "slurm_proc_threadcount": Exact("jobid username", nothing_yet),
    "slurm_proc_pid": Exact("jobid hostname", nothing_yet),
    "slurm_job_cpu_alloc": Exact("jobid", nothing_yet),
    "slurm_job_mem_alloc": Exact("jobid", nothing_yet),

    "slurm_job_scrape_duration": Within("", milliseconds),
    "slurm_node_scrape_duration": Within("", milliseconds),
    "slurm_diag_scrape_duration": Within("", milliseconds),
    "slurm_limit_scrape_duration": Within("", milliseconds),
    "slurm_job_scrape_error": Exact("", no_error),
    "slurm_node_scrape_error": Exact("", no_error),
    "slurm_diag_scrape_error": Exact("", no_error),
    "slurm_lic_scrape_error": Exact("", no_error),
    "slurm_account_collect_error": Exact("", no_error),
}

OF_DIAG = {
    # sdiag before and after are themselves requests that slurmctld counts
    "slurm_rpc_user_count": Between("user", requests("users", "count")),
    "slurm_rpc_user_total_time": Between("user", requests("users", "total")),
    "slurm_rpc_msg_type_count": Between("type", requests("types", "count")),
    "slurm_rpc_msg_type_avg_time": Within("type", request_means),
    "slurm_rpc_msg_type_total_time": Between("type", requests("types", "total")),
    "slurm_daemon_thread_count": Within("", threads),
    "slurm_dbd_agent_queue_size": Within("", queue),
    "slurm_backfill_job_count": Exact("", told("Total backfilled jobs (since last slurm start)", "backfill")),
    "slurm_backfill_cycle_count": Exact("", told("Total cycles", "backfill")),
    "slurm_backfill_cycle_counter": Exact("", told("Total cycles", "backfill")),
    "slurm_backfill_last_depth": Exact("", told("Last depth cycle", "backfill")),
    "slurm_backfill_last_depth_try_sched": Exact("", told("Last depth cycle (try sched)", "backfill")),

    "slurm_scheduler_reset_time_seconds": Exact("", told("Data since")),
    "slurm_scheduler_server_threads": Within("", threads),
    "slurm_scheduler_agent_queue_messages": Within("", queue),
    "slurm_scheduler_agents": Within("", queue),
    "slurm_scheduler_agent_threads": Within("", queue),
    "slurm_scheduler_dbd_agent_queue_messages": Within("", queue),
    # measured anew at each request
    "slurm_scheduler_clock_call_seconds": Within("", lambda before, after: only((1e-9, math.inf))),
    "slurm_scheduler_jobs_submitted_total": Since("", told("Jobs submitted")),
    "slurm_scheduler_jobs_started_total": Since("", told("Jobs started")),
    "slurm_scheduler_jobs_completed_total": Since("", told("Jobs completed")),
    "slurm_scheduler_jobs_cancelled_total": Since("", told("Jobs canceled")),
    "slurm_scheduler_jobs_failed_total": Since("", told("Jobs failed")),
    "slurm_scheduler_cycles_total": Since("scheduler", schedulers("Total cycles")),
    "slurm_scheduler_cycle_seconds_total": Exact("scheduler", told_nowhere),
    "slurm_scheduler_last_cycle_seconds": Between("scheduler", schedulers("Last cycle", scale=USEC), ROUNDING),
    "slurm_scheduler_mean_cycle_seconds": Between("scheduler", schedulers("Mean cycle", scale=USEC), ROUNDING),
    "slurm_scheduler_max_cycle_seconds": Between("scheduler", schedulers("Max cycle", scale=USEC), ROUNDING),
    "slurm_scheduler_cycle_exits_total": Since("scheduler reason", exits),
    "slurm_scheduler_examined_jobs_total": Exact("scheduler", told_nowhere),
    "slurm_scheduler_last_examined_jobs": Exact("scheduler", schedulers("Last depth cycle")),
    "slurm_scheduler_mean_examined_jobs": Exact("scheduler", schedulers("Mean depth cycle", "Depth Mean")),
    "slurm_scheduler_queue_jobs_total": Exact("scheduler", told_nowhere),
    "slurm_scheduler_last_queue_jobs": Exact("scheduler", schedulers("Last queue length")),
    "slurm_scheduler_mean_queue_jobs": Exact("scheduler", schedulers("Queue length mean")),
    # sdiag says so only in the middle of a cycle, and then the last values of before and after differ
    "slurm_scheduler_backfill_active": Within("", lambda before, after: only((0, 1))),
    "slurm_scheduler_backfill_last_cycle_time_seconds": Exact("", told("Last cycle when", "backfill")),
    "slurm_scheduler_backfilled_jobs_total": Exact(
        "", told("Total backfilled jobs (since last slurm start)", "backfill")),
    "slurm_scheduler_backfilled_het_components_total": Since(
        "", told("Total backfilled heterogeneous job components", "backfill")),
    "slurm_scheduler_backfill_tried_jobs_total": Exact("", told_nowhere),
    "slurm_scheduler_backfill_last_tried_jobs": Exact("", told("Last depth cycle (try sched)", "backfill")),
    "slurm_scheduler_backfill_mean_tried_jobs": Exact("", told("Depth Mean (try depth)", "backfill")),
    "slurm_scheduler_backfill_table_slots_total": Exact("", told_nowhere),
    "slurm_scheduler_backfill_last_table_slots": Exact("", told("Last table size", "backfill")),
    "slurm_scheduler_backfill_mean_table_slots": Exact("", told("Mean table size", "backfill")),
    "slurm_scheduler_rpcs_total": Between("type", requests("types", "count")),
    "slurm_scheduler_rpc_seconds_total": Between("type", requests("types", "total", USEC), ROUNDING),
    "slurm_scheduler_rpcs_dropped_total": Exact("type", told_nowhere),
    "slurm_scheduler_rpcs_queued": Exact("type", told_nowhere),
    "slurm_scheduler_rpc_last_batch": Exact("type", told_nowhere),
    "slurm_scheduler_rpc_max_batch": Exact("type", told_nowhere),
    "slurm_scheduler_user_rpcs_total": Between("user", requests("users", "count")),
    "slurm_scheduler_user_rpc_seconds_total": Between("user", requests("users", "total", USEC), ROUNDING),
    "slurm_scheduler_pending_rpcs": Exact("type", lambda diag: {
        (name,): count for name, count in diag.pending.items()}),
}

# Those of the profile mila.

# of slurm_monitoring_and_reporting
MILA_STATES = """allocated completing idle maint mixed perfctrs power_up reserved reboot down drained draining fail failing
    future power_down unknown not_responding""".split()


def mila_cpus(amount):
    return lambda facts: add_up(((reservation_of(facts, node),), amount(node)) for node in facts.nodes)


def mila_gpus(amount):
    return lambda facts: add_up(((of_type, reservation_of(facts, node)), gres_amount(node, "gpu", of_type, amount))
                                for node in facts.nodes for of_type in node.gres["gpu"])


def mila_state(node):
    if node.base == "down":
        return "down"
    return next((word for flag, word in (("drain", "drained"), ("not_responding", "not_responding"))
                 if flag in node.flags), "idle" if node.word == "planned" else node.word)


def mila_partitions(facts):
    return {**{(one.name,): 0 for one in facts.partitions},
            **add_up(((name,), job.tasks) for job in facts.jobs for name in job.partitions)}


OF_MILA = {
    "slurm_cpus_alloc": Exact("reservation", mila_cpus(lambda node: node.cpus_allocated)),
    "slurm_cpus_idle": Exact("reservation", mila_cpus(lambda node: cpus_in(node, "idle"))),
    "slurm_cpus_drain": Exact("reservation", mila_cpus(lambda node: cpus_in(node, "unusable"))),
    "slurm_cpus_total": Exact("reservation", mila_cpus(lambda node: node.cpus)),
    "slurm_gpus_alloc": Exact("type reservation", mila_gpus("allocated")),
    "slurm_gpus_idle": Exact("type reservation", mila_gpus("idle")),
    "slurm_gpus_drain": Exact("type reservation", mila_gpus("unusable")),
    "slurm_gpus_total": Exact("type reservation", mila_gpus("all")),
    "slurm_node_states": Exact("name slurm_node_states", lambda facts: {
        (node.name, state): state == mila_state(node) for node in facts.nodes for state in MILA_STATES}),
    "slurm_job_states": Exact("name", lambda facts: {
        (state.lower(),): count for (state,), count in job_states(facts).items()}),
    "slurm_partitions": Exact("name", mila_partitions),
    "slurm_login_nodes": Exact("name", lambda facts: add_up(((job.alloc_node,), job.tasks) for job in facts.jobs)),
}

FAMILIES = {**OF_FACTS, **OF_DIAG}

# Measured anew each time, or moved by the asking itself; and what is counted since an exporter first looked.
FLEETING = re.compile("slurm_(job|node|diag|limit)_scrape_duration|slurm_scheduler_clock_call_seconds"
                      "|slurm_(daemon_thread_count|dbd_agent_queue_size)"
                      "|slurm_scheduler_(server_threads|agent\\w*|dbd_agent_queue_messages|backfill_active)"
                      "|slurm_scheduler_\\w+_total|slurm_job_wait_seconds\\w*|slurm_rpc_msg_type_avg_time")
CYCLES = "slurm_scheduler_cycles_total"


def scrape_at_rest(exporter, other):
    """Families of the exporter, of the other, and of the exporter again, while no series of the cluster comes or goes.

    Slurm calculates fair-share usage some time after its start: families of it appear then. A scheduler cycle between may have
    left other numbers, and the next one the same again."""
    def scrape():
        before, between, after = (each.metrics().families() for each in (exporter, other, exporter))
        changed = [name for name in before.keys() | after.keys() if name.startswith("slurm_") and not FLEETING.fullmatch(name)
                   and before.get(name, {}).keys() != after.get(name, {}).keys()]
        return None if changed or before[CYCLES] != after[CYCLES] else (before, between, after)
    return wait_until(scrape, "the cluster is at rest")


def moved(rows, before, after):
    """Those families that cannot be compared, since Slurm no longer says what it said before the scrape."""
    return [name for name, row in rows.items() if row.has_moved(before, after)]


def differences(name, row, before, after, found):
    """In words, what is wrong with the series of a family, {((label, value), …): value}."""
    limits = {tuple(zip(row.labels, values)): limit for values, limit in row.limits(before, after).items()}
    words = []
    for series in limits.keys() | found.keys():
        low, high = limits.get(series, (None, None))
        wanted = "nothing" if low is None else f"{low:.12g}" if low == high else f"{low:.12g} to {high:.12g}"
        if series not in limits or series not in found or not low <= found[series] <= high:
            labels = ",".join(f'{label}="{value}"' for label, value in series)
            words.append(f"{name}{{{labels}}} is {found.get(series, 'nothing')}, but Slurm says {wanted}")
    return sorted(words)
