# SPDX-License-Identifier: GPL-2.0-or-later
"""What holds in every reply of /metrics, whatever Slurm says. sonde.py checks each reply that a test gets, so that every
situation which a test brings about is checked with it.

A row of EQUATIONS is a set of sums that are equal, by the labels that it names. A sum whose families are not in a reply (a
collector is off, another profile) is left out; Scrapes.checked has those that were compared.
"""
import collections
import contextlib
import math
import os
import re
import sqlite3
import subprocess


class Sum:
    """The values of one or several families, added up over all labels but those of the equation, of series with these labels."""

    def __init__(self, *families, **labels):
        self.families, self.labels = families, labels.items()

    def __str__(self):
        chosen = ",".join(f'{label}="{value}"' for label, value in self.labels)
        return " + ".join(f"{family}{{{chosen}}}" if chosen else family for family in self.families)

    def of(self, found, by):
        """values of the labels → sum; None where the reply has not all of the families."""
        if not all(family in found for family in self.families):
            return None
        sums = collections.defaultdict(float)
        for family in self.families:
            for labels, value in found[family]:
                if self.labels <= labels.items():
                    sums[tuple(labels.get(label, "") for label in by)] += value
        return {key: value for key, value in sums.items() if value}


ROUNDING = 3e-6  # the kernel rounds CPU time in user mode, in system mode and of both to a microsecond each


class Equation:
    def __init__(self, by, *sums):
        self.by, self.sums = by.split(), sums

    def sides(self, found):
        """Those that are in the reply; several clusters in one are told apart."""
        of_each = [(side, side.of(found, [*self.by, "cluster"])) for side in self.sums]
        return [(side, sums) for side, sums in of_each if sums is not None]

    def faults(self, sides):
        (first, expected), *others = sides
        for side, sums in others:
            for key in expected.keys() | sums.keys():
                if not math.isclose(expected.get(key, 0), sums.get(key, 0), rel_tol=1e-9, abs_tol=ROUNDING):
                    yield f"{first} is {expected.get(key, 0)}, {side} is {sums.get(key, 0)} of {dict(zip([*self.by, 'cluster'], key))}"


def parts(total, by, *names):
    """total = total_allocated + total_idle + total_unusable, and the like."""
    return Equation(by, Sum(total), Sum(*(f"{total}_{name}" for name in names)))


FREE_OR_NOT = ("allocated", "idle", "unusable")

EQUATIONS = [
    # Nodes: all from one reading.
    Equation("", Sum("slurm_cpus_total"), Sum("slurm_state_cpus"), Sum("slurm_cpus_per_state"), Sum("slurm_node_cpus")),
    Equation("state", Sum("slurm_state_cpus"), Sum("slurm_cpus_per_state")),
    Equation("", Sum("slurm_state_cpus", use="allocated"), Sum("slurm_node_cpus_allocated")),
    Equation("", Sum("slurm_mem_real"), Sum("slurm_node_memory_bytes")),
    Equation("", Sum("slurm_mem_alloc"), Sum("slurm_node_memory_allocated_bytes")),
    parts("slurm_gpus", "type", *FREE_OR_NOT),
    parts("slurm_partition_gpus", "partition type", *FREE_OR_NOT),
    parts("slurm_gres", "gres type", *FREE_OR_NOT),
    parts("slurm_partition_gres", "partition gres type", *FREE_OR_NOT),
    Equation("type", Sum("slurm_gpus"), Sum("slurm_gres", gres="gpu"), Sum("slurm_node_gres", gres="gpu")),
    Equation("gres type", Sum("slurm_gres"), Sum("slurm_gres_per_state"), Sum("slurm_node_gres")),
    Equation("gres type", Sum("slurm_gres_allocated"), Sum("slurm_node_gres_allocated")),
    parts("slurm_gpu_shards", "type", *FREE_OR_NOT),
    parts("slurm_partition_gpu_shards", "partition type", *FREE_OR_NOT),
    Equation("type", Sum("slurm_gpus"), Sum("slurm_state_gpus"), Sum("slurm_gpus_per_state"), Sum("slurm_node_gpus")),
    Equation("type", Sum("slurm_gpus_allocated"), Sum("slurm_state_gpus", use="allocated"), Sum("slurm_node_gpus_allocated")),
    Equation("type", Sum("slurm_gpus_idle"), Sum("slurm_state_gpus", use="idle")),
    Equation("type", Sum("slurm_gpus_unusable"), Sum("slurm_state_gpus", use="unusable")),
    Equation("type", Sum("slurm_gpu_shards"), Sum("slurm_gpu_shards_per_state")),
    Equation("", Sum("slurm_nodes"), Sum("slurm_node_count_per_state"), Sum("slurm_node_info")),
    Equation("state", Sum("slurm_nodes"), Sum("slurm_node_state")),
    Equation("flag", Sum("slurm_nodes_flagged"), Sum("slurm_node_flag")),
    Equation("reservation", Sum("slurm_cpus_total"), Sum("slurm_cpus_alloc", "slurm_cpus_idle", "slurm_cpus_drain")),
    Equation("type reservation", Sum("slurm_gpus_total"), Sum("slurm_gpus_alloc", "slurm_gpus_idle", "slurm_gpus_drain")),
    # Jobs.
    Equation("state", Sum("slurm_job_count_per_state"), Sum("slurm_user_state_total"), Sum("slurm_account_job_state_total"),
             Sum("slurm_qos_jobs")),
    Equation("state", Sum("slurm_user_cpu_alloc"), Sum("slurm_account_job_state_cpu_alloc"), Sum("slurm_qos_job_cpus")),
    Equation("state", Sum("slurm_user_mem_alloc"), Sum("slurm_account_job_state_mem_alloc"), Sum("slurm_qos_job_memory_bytes")),
    Equation("", Sum("slurm_pending_reason_total"), Sum("slurm_account_pending_jobs"), Sum("slurm_qos_pending_jobs")),
    Equation("type", Sum("slurm_user_gpus_allocated"), Sum("slurm_account_gpus_allocated")),
    Equation("type", Sum("slurm_user_gpu_shards_allocated"), Sum("slurm_account_gpu_shards_allocated")),
    Equation("gres type", Sum("slurm_user_gres_allocated"), Sum("slurm_account_gres_allocated")),
    Equation("name", Sum("slurm_lic_total"), Sum("slurm_lic_used", "slurm_lic_free")),
    # The agent's.
    Equation("slurm_job instance", Sum("jobs_cpu_time_total"), Sum("jobs_user_time", "jobs_system_time")),
]
NAMES = {family for equation in EQUATIONS for side in equation.sums for family in side.families}


def read(text):
    """family → [({label: value}, value)] of those in NAMES, {series: value} of counters of the cluster, series whose value is no number."""
    found, counters, no_numbers = collections.defaultdict(list), {}, []
    is_counter = False
    for line in text.split("\n"):  # a label may hold what splitlines() takes for the end of a line
        if line.startswith("# TYPE "):
            is_counter = line.startswith("# TYPE slurm_") and line.endswith(" counter")
        elif line and not line.startswith("#"):
            series, _, value = line.rpartition(" ")
            if value == "NaN":
                no_numbers.append(series)
            if is_counter:
                counters[series] = float(value)
            name, _, labels = series.partition("{")
            if name in NAMES:
                found[name].append((dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels)), float(value)))
    return found, counters, no_numbers


class Scrapes:
    """The replies of one process to /metrics."""

    def __init__(self):
        self.counters = {}  # never changed in place: a request keeps those that were there when it was sent
        self.checked = set()

    def check(self, text, before):
        """Raises AssertionError with all that does not hold; before is self.counters as of the request."""
        found, counters, no_numbers = read(text)
        faults = [f"{series} is not a number: an unknown value is absent" for series in no_numbers]
        faults += [f"{series} fell from {before[series]} to {value}" for series, value in counters.items()
                   if value < before.get(series, 0)]
        self.counters = {**self.counters, **counters}
        for equation in EQUATIONS:
            sides = equation.sides(found)
            if len(sides) > 1:
                self.checked.update(side for side, _ in sides)
                faults += equation.faults(sides)
        assert not faults, "\n".join(faults)


def tasks(job_id):
    """How many jobs a line of sacct is: 7_[0-8:2,9%3] is six, 7_3 and 7 are one."""
    _, _, ranges = job_id.partition("_[")
    count = 0
    for part in ranges.rstrip("]").partition("%")[0].split(","):
        first, _, last = part.partition("-")
        last, _, step = last.partition(":")
        count += (int(last) - int(first)) // int(step or 1) + 1 if last else 1
    return count


real_commands = set()  # directories of a real Slurm's commands, which whoever makes them adds


class Accounting:
    """What slurmdbd has of jobs that have ended, by the sacct in a directory."""

    STATES = "BF,CA,CD,DL,F,NF,OOM,PR,RQ,TO"
    FIELDS = "JobIDRaw,Submit,JobID,State,Account,Partition,AllocCPUS,Start,End,NodeList"

    def __init__(self, commands):
        # Fields that users cannot choose; with -s, as otherwise jobs that were never eligible are left out.
        done = subprocess.run([f"{commands}/sacct", "-a", "-X", "-D", "-n", "-P", "-S", "2001-01-01", "-E", "now", "-s", self.STATES,
                               "-o", self.FIELDS], capture_output=True, text=True,
                              env=dict(os.environ, SLURM_TIME_FORMAT="%s", SLURM_BITSTR_LEN="0", TZ="UTC"))
        assert done.returncode == 0, done.stderr
        self.runs = {}
        for line in done.stdout.splitlines():
            job_id, submit, name, state, account, partition, cpus, start, end, nodes = line.split("|")
            has_run = nodes != "None assigned"
            self.runs[int(job_id), int(submit)] = (tasks(name), state.split()[0], account, partition, int(cpus) if has_run else None,
                                                   int(start) if has_run else None, int(end))


class Store:
    """Of each run whose end slurmdbd has reported: what the store has recorded; and what it has counted."""

    RUNS = """SELECT j.cluster, j.job_id, j.submit_time, coalesce(j.tasks, 1), j.state, j.account, j.partition,
        iif(j.start_time, j.cpus, NULL), j.start_time, j.end_time FROM jobs j JOIN job ON job.id = j.id
        WHERE job.is_counted = 1"""
    COUNTS = """SELECT cluster.name, text.value, sum(count) FROM ended JOIN cluster ON cluster.id = ended.cluster
        JOIN text ON text.id = ended.state GROUP BY 1, 2"""

    ACCOUNTED = "SELECT cluster.name FROM mark JOIN cluster ON cluster.id = mark.cluster WHERE mark.name = 'is_accounted'"

    def __init__(self, path):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            self.accounted = {cluster for cluster, in connection.execute(self.ACCOUNTED)}
            self.runs = collections.defaultdict(dict)
            for cluster, job_id, submit, *facts in connection.execute(self.RUNS):
                self.runs[cluster][job_id, submit] = tuple(facts)
            self.counts = collections.defaultdict(dict)
            for cluster, state, count in connection.execute(self.COUNTS):
                self.counts[cluster][state] = count

    def faults(self, cluster, accounting):
        """Where a run, or the number of runs by state, is not what slurmdbd says. Runs of which the store has not been told yet
        are none of it, and until slurmdbd has replied once, what counts is what polls have shown."""
        if cluster not in self.accounted:
            return
        recorded = self.runs[cluster]
        for run, facts in recorded.items():
            if accounting.runs.get(run) != facts:
                yield f"run {run} of {cluster}: {facts} is recorded, sacct has {accounting.runs.get(run)}"
        expected = collections.Counter()
        for run in recorded:
            if run in accounting.runs:
                count, state, *_ = accounting.runs[run]
                expected[state] += count
        if self.counts[cluster] != expected:
            yield f"ended jobs of {cluster}: {self.counts[cluster]} are counted, sacct has {dict(expected)}"


def cluster_name(commands):
    text = subprocess.run([f"{commands}/scontrol", "show", "config"], capture_output=True, text=True, check=True).stdout
    return re.search(r"^ClusterName *= (\S+)$", text, re.M)[1]


def check_store(path, places):
    """places: the directories of the clusters' commands."""
    store = Store(path)
    faults = [fault for place in places for fault in store.faults(cluster_name(place), Accounting(place))]
    assert not faults, "\n".join(faults)
