#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Two clusters with equal job ids, one store: what is kept of them, compared with what Slurm says."""
import calendar
import collections
import contextlib
import csv
import io
import json
import math
import os
import pathlib
import sqlite3
import subprocess
import tempfile
import time
import unittest

from clock import Clock
from slurm import Slurm
from sonde import DEADLINE, SONDE, Exporter, wait_until

CLUSTERS = {"blue": "bookworm", "red": "trixie"}


def setUpModule():
    global FLEET
    FLEET = {}
    for name, suite in CLUSTERS.items():
        FLEET[name] = unittest.enterModuleContext(contextlib.closing(Named(suite, name)))


def stamp(text):
    return int(text) if text.isdigit() else None


def fact(state, account, partition, cpus, start, end):
    """What both must agree on: how many CPUs a job has that never started is a matter of taste."""
    return state, account, partition, cpus if start else None, start, end


class Named(Slurm):
    """A cluster of that name with two accounts."""

    def __init__(self, suite, name):
        # Slurm names cgroups by job id, and those of the two are the same.
        super().__init__(suite, seeded=False, conf=f"ClusterName={name}\nFirstJobId=100\nMinJobAge=10\n", cgroup="none")
        self.cluster = name
        for words in (["add", "account", "physics,bio"], ["add", "user", "alice", "account=physics"],
                      ["add", "user", "bob", "account=bio"]):
            self.run("sacctmgr", "-iQ", *words, check=False)
        for user in ("alice", "bob"):
            wait_until(lambda u=user: self.run("sbatch", "--test-only", "-p", "cpu", "--wrap=true", user=u,
                                               check=False).returncode == 0, f"Slurm knows {user}")

    close = Slurm.end

    def submit(self, script, *flags, user="alice"):
        done = self.run("sbatch", "--parsable", "-p", "cpu", "-D", "/tmp", "-o", "/dev/null", "--mem=50M", *flags,
                        f"--wrap={script}", user=user)
        return int(done.stdout.split(";")[0])

    def wait_ended(self, *jobs):
        """Until slurmdbd knows it."""
        ids = ",".join(str(job) for job in jobs)

        def all_ended():
            text = self.run("sacct", "-a", "-X", "-D", "-n", "-P", "-j", ids, "-o", "JobIDRaw,State,End,Partition").stdout
            rows = [line.split("|") for line in text.splitlines()]
            # It may learn of an end before it is told what it was that has ended.
            return len(rows) >= len(jobs) and all(
                row[1] not in ("RUNNING", "PENDING") and row[2] != "Unknown" and row[3] for row in rows)
        wait_until(all_ended, f"{ids} of {self.cluster} have ended")

    def accounted(self):
        """(job id, submit time) → (state, account, partition, cpus, start, end) as sacct tells."""
        # Without -s it leaves out jobs that were never eligible.
        text = self.run("env", "SLURM_TIME_FORMAT=%s", "sacct", "-a", "-X", "-D", "-n", "-P", "-S", "2020-01-01", "-E", "now",
                        "-s", "BF,CA,CD,DL,F,NF,OOM,PD,PR,R,RQ,S,TO",
                        "-o", "JobIDRaw,Submit,State,Account,Partition,AllocCPUS,Start,End,NodeList").stdout
        rows = (line.split("|") for line in text.splitlines())
        return {(int(row[0]), int(row[1])): fact(row[2].split()[0], row[3], row[4], int(row[5]), stamp(
            row[6]) if row[8] != "None assigned" else None, stamp(row[7])) for row in rows}


    def tasks(self):
        """(job id, submit time) → how many tasks of an array a row of slurmdbd's table stands for, if more than one."""
        text = self.run("mariadb", "--no-defaults", "-NS", self.inside("mysql/socket"), "slurm_acct_db", "-e",
                        f"SELECT id_job, time_submit, array_task_pending FROM {self.cluster}_job_table").stdout
        return {(job, submit): tasks for job, submit, tasks in (map(int, line.split()) for line in text.splitlines())
                if tasks > 1}


class StoreTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.store = self.directory / "sonde.db"

    def exporter(self, *flags, store=None, commands=lambda name: FLEET[name].env["SANDBOX_BIN"], env=None):
        files = []
        for name in CLUSTERS:
            path = self.directory / f"{name}.yml"
            path.write_text(f"source: cli\nslurm.bin-path: {commands(name)}\n")
            files.append(f"--cluster.file={path}")
        return Fleet(*files, f"--store=sqlite:{store or self.store}", "--store.interval=1s", "--store.history-interval=1s",
                     "--slurm.poll-limit=1s", *flags, env=env)

    def rows(self, question, *values, store=None):
        with contextlib.closing(sqlite3.connect(f"file:{store or self.store}?mode=ro", uri=True)) as connection:
            return connection.execute(question, values).fetchall()

    def kept(self, cluster, store=None):
        """As accounted() of the cluster, from the store."""
        rows = self.rows("SELECT job_id, submit_time, state, account, partition, cpus, start_time, end_time FROM jobs"
                         " WHERE cluster = ?", cluster, store=store)
        return {row[:2]: fact(*row[2:]) for row in rows}

    def wait_same(self, store=None):
        """Until the store has what slurmdbd has."""
        for name in CLUSTERS:
            try:
                wait_until(lambda n=name: FLEET[n].accounted() == self.kept(n, store), f"the store knows all of {name}")
            except AssertionError:
                ours, theirs = self.kept(name, store), FLEET[name].accounted()
                raise AssertionError(f"{name}: only ours {sorted(ours.items() - theirs.items(), key=repr)}, "
                                     f"only theirs {sorted(theirs.items() - ours.items(), key=repr)}") from None

    def ask(self, command, *flags, env=None):
        done = subprocess.run([SONDE, command, f"--store=sqlite:{self.store}", *flags], capture_output=True, text=True,
                              timeout=DEADLINE, env=dict(os.environ, **(env or {})))
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def change_times(self, cluster, times, jobs="time_end"):
        """In slurmdbd's tables, of jobs that have ended; and waits until slurmctld knows nothing else."""
        cluster.run("mariadb", "--no-defaults", "-S", cluster.inside("mysql/socket"), "slurm_acct_db", "-e",
                    f"UPDATE {cluster.cluster}_job_table SET {times} WHERE {jobs};"
                    f"UPDATE {cluster.cluster}_event_table SET time_start = time_start - 18000 WHERE node_name = ''")
        wait_until(lambda: not cluster.run("squeue", "-h", "-t", "all").stdout, "slurmctld has forgotten its jobs")


class Fleet(Exporter):
    @staticmethod
    def complete(flags):
        return flags


class TwoClusters(StoreTest):
    def test_what_is_kept_is_what_slurm_says_also_of_what_ran_while_nobody_looked(self):
        clock = self.enterContext(Clock())
        with self.exporter(env=clock.env):
            jobs = {name: [cluster.submit("true"), cluster.submit("exit 3", user="bob"),
                           cluster.submit("true", "--array=1-3")] for name, cluster in FLEET.items()}
            self.assertEqual(jobs["blue"], jobs["red"])
            for name, cluster in FLEET.items():
                cluster.wait_ended(*jobs[name])
            self.wait_same()
        # Nobody looks: one runs and ends, one is cancelled while it waits, as are two arrays, one is requeued.
        for cluster in FLEET.values():
            waiting = cluster.submit("true", "--hold")
            arrays = {cluster.submit("true", "--hold", f"--array={tasks}"): n
                      for tasks, n in (("1-1000", 1000), ("0-13:2%2", 7))}
            wait_until(lambda c=cluster, a=arrays: {job: n for (job, _), n in c.tasks().items() if job in a} == a,
                       "slurmdbd knows the tasks")
            cluster.run("scancel", *map(str, arrays))
            again = cluster.submit("sleep 300", "--requeue")
            wait_until(lambda c=cluster, j=again: c.run("squeue", "-h", "-j", str(j), "-o", "%T").stdout.strip() == "RUNNING",
                       "it runs")
            cluster.run("scancel", str(waiting))
            cluster.run("scontrol", "requeue", str(again))
            short = cluster.submit("true")
            cluster.wait_ended(waiting, short, *arrays)
            cluster.run("scancel", str(again))
            cluster.wait_ended(waiting, short, again, *arrays)
        clock.advance(600)  # ends of arrays count when slurmdbd has had that long to learn of their tasks
        with self.exporter(env=clock.env) as exporter:
            self.wait_same()
            counted = collections.Counter()
            for name, cluster in FLEET.items():
                tasks = cluster.tasks()
                for run, (state, account, partition, *_) in cluster.accounted().items():
                    counted[name, state, account, partition] += tasks.get(run, 1)
                self.assertGreater(counted[name, "CANCELLED", "physics", "cpu"], 1007)
            # Slurm 22.05 cannot list tasks.
            listed = FLEET["red"].run("sacct", "-a", "-X", "-D", "-n", "--array", "-S", "2020-01-01", "-E", "now", "-s",
                                      "BF,CA,CD,DL,F,NF,OOM,PD,PR,R,RQ,S,TO", "-o", "State%20,Account,Partition").stdout
            self.assertEqual(collections.Counter(("red", line.split()[0], *line.split()[-2:]) for line in listed.splitlines()),
                             {key: n for key, n in counted.items() if key[0] == "red"})

            def told():
                return {tuple(dict(labels)[label] for label in ("cluster", "state", "account", "partition")): value
                        for labels, value in exporter.metrics().families().get("slurm_jobs_ended_total", {}).items()}
            wait_until(lambda: told() == dict(counted), "the counters agree with slurmdbd")
            # Another exporter, that has seen nothing of it, with a store of its own.
            second = self.directory / "second.db"
            with self.exporter(store=second, env=clock.env) as other:
                self.wait_same(second)
                wait_until(lambda: exporter.metrics().families()["slurm_jobs_ended_total"] ==
                           other.metrics().families().get("slurm_jobs_ended_total"), "two exporters agree")
        # It survives its end.
        with self.exporter(env=clock.env) as exporter:
            wait_until(lambda: told() == dict(counted), "the counters go on")
        self.check_questions(counted, jobs["blue"][0])

    def check_questions(self, counted, first):
        answer = json.loads(self.ask("jobs", "--all-users", "--format=json", "--from=2020-01-01", "--limit=1000"))
        told = collections.Counter()
        for row in answer["jobs"]:
            told[row["cluster"], row["state"], row["account"], row["partition"]] += row["tasks"]
        self.assertEqual(told, counted)
        equal = json.loads(self.ask("jobs", "--all-users", "--format=json", "--from=2020-01-01", str(first)))["jobs"]
        self.assertEqual(sorted(row["cluster"] for row in equal), ["blue", "red"])
        one = json.loads(self.ask("jobs", "--all-users", "--format=json", "--from=2020-01-01", f"blue:{first}"))["jobs"]
        self.assertEqual([row["cluster"] for row in one], ["blue"])


class Waits(StoreTest):
    """How long jobs were pending, of all that have started since the store was begun."""

    BOUNDS = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 14400, 43200, 86400, 259200, 604800)

    def blind(self, name):
        """Slurm's commands, of which squeue shows only jobs that are called shown."""
        directory = self.directory / f"{name}-bin"
        directory.mkdir(exist_ok=True)
        for command in pathlib.Path(FLEET[name].env["SANDBOX_BIN"]).iterdir():
            script = directory / command.name
            script.write_text(f'#!/bin/sh\nexec {command} "$@" {"--name=shown" * (command.name == "squeue")}\n')
            script.chmod(0o755)
        return directory

    @staticmethod
    def told(exporter):
        """(cluster, partition) → seconds in all, jobs, and of them those up to each bound."""
        found, families = {}, exporter.metrics().families()
        for labels, value in families.get("slurm_job_wait_seconds_sum", {}).items():
            of = dict(labels)
            buckets = {float(dict(series)["le"]): count for series, count in families["slurm_job_wait_seconds_bucket"].items()
                       if (dict(series)["cluster"], dict(series)["partition"]) == (of["cluster"], of["partition"])}
            found[of["cluster"], of["partition"]] = (value, *(buckets[bound] for bound in Waits.BOUNDS),
                                                     buckets[math.inf])
        return found

    @staticmethod
    def expected(jobs):
        """The same, as sacct tells; of partition cpu, where they run."""
        found = {}
        for name, cluster in FLEET.items():
            text = cluster.run("env", "SLURM_TIME_FORMAT=%s", "sacct", "-a", "-X", "-D", "-n", "-P", "-j",
                               ",".join(map(str, jobs[name])), "-o", "Eligible,Start,NodeList").stdout
            rows = [line.split("|") for line in text.splitlines()]
            waits = [int(start) - int(eligible) for eligible, start, nodes in rows if nodes != "None assigned"]
            found[name, "cpu"] = (sum(waits), *(sum(wait <= bound for wait in waits) for bound in Waits.BOUNDS), len(waits))
        return found

    def wait_told(self, exporter, jobs):
        wait_until(lambda: {key: value for key, value in self.told(exporter).items() if key[1] == "cpu"} ==
                   self.expected(jobs), "the histograms agree with sacct")

    def test_jobs_that_no_poll_has_shown_are_counted_once(self):
        with self.exporter(commands=self.blind) as exporter:
            wait_until(lambda: len(self.told(exporter)) >= 2 * len(CLUSTERS), "the store is begun")
            self.assertEqual({value for values in self.told(exporter).values() for value in values}, {0})
            jobs = {name: [cluster.submit("true", "-Jhidden"), cluster.submit("true", "-Jhidden", "-bnow+2"),
                           cluster.submit("true", "-Jshown"), cluster.submit("true", "-Jhidden", "--array=1-3")]
                    for name, cluster in FLEET.items()}
            for name, cluster in FLEET.items():
                held = cluster.submit("true", "-Jhidden", "--hold")
                cluster.run("scancel", str(held))
                cluster.wait_ended(held, *jobs[name])
                jobs[name].append(held)
            self.wait_told(exporter, jobs)
            self.assertEqual({values[-1] for key, values in self.told(exporter).items() if key[1] == "cpu"}, {6})
        # The queue shows them now, if it still does, and accounting tells them again; a job that comes later is the sign
        # that both were read.
        with self.exporter() as exporter:
            for name, cluster in FLEET.items():
                jobs[name].append(cluster.submit("true", "-Jlater"))
                cluster.wait_ended(*jobs[name])
            self.wait_same()
            self.wait_told(exporter, jobs)


class Usage(StoreTest):
    def test_usage_agrees_with_sreport_to_the_second(self):
        jobs = {name: [cluster.submit(f"sleep {seconds}", f"-n{cpus}", user=user)
                       for seconds, cpus, user in ((2, 1, "alice"), (3, 2, "alice"), (4, 1, "bob"))]
                for name, cluster in FLEET.items()}
        for name, cluster in FLEET.items():
            cluster.wait_ended(*jobs[name])
            self.shift_back(cluster)
        with self.exporter():
            self.wait_same()
        now = int(time.time())
        begin, end = (now // 3600 - 4) * 3600, now // 3600 * 3600
        rows = csv.DictReader(io.StringIO(self.ask("usage", "--by=cluster,account,user", "--format=csv", "--unit=seconds",
                                                   f"--from={begin}", f"--to={end}")))
        ours = {(row["cluster"], row["account"], row["user"]): int(row["cpu_seconds"]) for row in rows if row["account"]}
        theirs = {}

        # At the full hour slurmdbd rolls up by itself; both at once count double, until it is done once more.
        def agree():
            theirs.clear()
            theirs.update(entry for cluster in FLEET.values() for entry in self.reported(cluster, begin, end).items())
            if ours == theirs:
                return True
            for cluster in FLEET.values():
                self.roll_up(cluster)
            return False
        try:
            wait_until(agree, "sreport agrees")
        except AssertionError:
            self.assertEqual(ours, theirs)
        self.assertGreater(sum(ours.values()), 0)

    def shift_back(self, cluster):
        """Only hours that have passed are rolled up: what has ended happened two hours ago, in a cluster that was there."""
        self.change_times(cluster, ", ".join(f"time_{word} = IF(time_{word}, time_{word} - 7200, 0)"
                                             for word in ("submit", "eligible", "start", "end")))
        self.roll_up(cluster)

    @staticmethod
    def roll_up(cluster):
        cluster.run("env", "TZ=UTC", "sacctmgr", "-i", "roll",
                    time.strftime("%Y-%m-%dT%H:00:00", time.gmtime(time.time() - 5 * 3600)))

    @staticmethod
    def reported(cluster, begin, end):
        stamps = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(stamp)) for stamp in (begin, end)]
        text = cluster.run("env", "TZ=UTC", "sreport", "-n", "-P", "-t", "Seconds", "cluster", "AccountUtilizationByUser",
                           f"start={stamps[0]}", f"end={stamps[1]}", "format=Cluster,Account,Login,Used").stdout
        rows = (line.split("|") for line in text.splitlines())
        return {(row[0], row[1], row[2]): int(row[3]) for row in rows if row[2]}


class Zones(StoreTest):
    # Where clocks were set back, and when.
    CHANGES = {"blue": ("Europe/Berlin", calendar.timegm((2026, 10, 25, 1, 0, 0))),
               "red": ("America/Toronto", calendar.timegm((2026, 11, 1, 6, 0, 0)))}

    def commands(self, name):
        """Slurm's, run as in a shell of that zone."""
        directory = self.directory / f"{name}-bin"
        directory.mkdir(exist_ok=True)
        for command in pathlib.Path(FLEET[name].env["SANDBOX_BIN"]).iterdir():
            script = directory / command.name
            script.write_text(f'#!/bin/sh\nTZ=${{TZ-{self.CHANGES[name][0]}}} exec {command} "$@"\n')
            script.chmod(0o755)
        return directory

    def test_times_are_those_of_slurm_across_a_change_of_clocks_in_two_zones(self):
        jobs = {name: cluster.submit("true", "-n2") for name, cluster in FLEET.items()}
        for name, cluster in FLEET.items():
            cluster.wait_ended(jobs[name])
            change = self.CHANGES[name][1]
            self.change_times(cluster, f"time_submit = {change} - 5400, time_eligible = {change} - 5400,"
                              f" time_start = {change} - 1800, time_end = {change} + 1800", f"id_job = {jobs[name]}")
        with self.exporter(commands=self.commands):
            self.wait_same()
        for name, (zone, change) in self.CHANGES.items():
            self.assertEqual(self.kept(name)[jobs[name], change - 5400],
                             ("COMPLETED", "physics", "cpu", 2, change - 1800, change + 1800))
            # The reader's day has 25 hours; the hour before the change is not the one after it.
            day = time.strftime("%Y-%m-%d", time.gmtime(change))
            rows = json.loads(self.ask("usage", "--by=cluster", "--format=json", "--unit=seconds", f"--cluster={name}", f"--from={day}",
                                       f"--to={day}T23:59:59", env={"TZ": zone}))["rows"]
            self.assertEqual([(row["jobs"], row["cpu_seconds"]) for row in rows], [(1, 7200)])



if __name__ == "__main__":
    import tap
    tap.main()
