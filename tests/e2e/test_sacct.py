#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What slurmdbd is asked by sacct, on a real one: every job is told, once for each run, whatever its name, its state and
the zone of whoever asks; and a store is completed from it.

SONDE_SUITES names the Debian releases to try, as for test_sandbox.py.
"""
import json
import os
import pathlib
import re
import secrets
import shlex
import sqlite3
import subprocess
import tempfile
import time
import unittest

from slurm import SUITES, Slurm
from sonde import BUILD, wait_until

PROBE = BUILD / "tests/e2e/accounting_probe"
UNKNOWN = 2**32 - 1


class Accounting:
    """The tests; a class for each suite is made below."""

    suite = None

    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm(cls.suite)
        cls.addClassCleanup(cls.slurm.end)
        cls.bin = cls.slurm.env["SANDBOX_BIN"]

    def probe(self, *arguments, prefix="", place=None, check=True, **env):
        command, *rest = arguments
        done = subprocess.run([PROBE, command, self.bin if place is None else place, prefix, *map(str, rest)],
                              capture_output=True, text=True, errors="surrogateescape", env={**os.environ, **env})
        self.assertTrue(not check or done.returncode == 0, done.stderr)
        return done

    def ask(self, since=None, until=None, ids=(), **options):
        now = int(time.time())
        done = self.probe("ask", since or now - 86400, until or now + 60, *ids, **options)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def as_user(self, user):
        """A prefix that runs what follows as that user, inside."""
        return shlex.join(self.slurm.command("sh", "-c", user=user))

    def sbatch(self, *flags, user="alice", script="true"):
        return int(self.slurm.run("sbatch", "--parsable", "-D/", "-pgpu", "-n1", "-t5", "-o/dev/null", *flags,
                                  "--wrap", script, user=user).stdout.split(";")[0])

    def await_end(self, *ids):
        """Until slurmdbd has heard of it."""
        def have_ended():
            told = self.ask(ids=ids)
            return {*ids} <= {run["id"] for run in told} and all(run["end"] for run in told)
        wait_until(have_ended, f"{ids} have ended")

    def sql(self, text):
        return self.slurm.run("mariadb", "--no-defaults", "-NS", self.slurm.inside("mysql/socket"), "slurm_acct_db",
                              "-e", text).stdout

    def set_dbd(self, line):
        """Adds the line to slurmdbd.conf, or takes all away that were added."""
        path = pathlib.Path(self.slurm.env["SANDBOX_STATE"], "etc/slurmdbd.conf")
        text = path.read_text().split("# test\n")[0]
        path.write_text(text + (f"# test\n{line}\n" if line else ""))
        self.slurm.run("kill", "-HUP", pathlib.Path(self.slurm.env["SANDBOX_STATE"], "run/slurmdbd.pid").read_text().strip())

    def test_every_job_of_the_accounting_is_told_once_for_each_run(self):
        runs, rows = wait_until(self.look_at_the_tables, "slurmdbd's tables do not change and tell of most jobs")
        self.assertEqual(sorted(runs), sorted(rows))

    def look_at_the_tables(self):
        """What the probe tells and what is in the tables: all that could have run, and all that has ended without; jobs that
        still wait to be able to run are the queue's to tell. Nothing if the tables changed meanwhile."""
        query = ("SELECT id_job, time_submit FROM sandbox_job_table WHERE deleted = 0 AND "
                 "time_submit > UNIX_TIMESTAMP() - 80000 AND "
                 "(time_eligible BETWEEN 1 AND UNIX_TIMESTAMP() + 60 OR time_end)")
        before, told, after = self.sql(query), self.ask(), self.sql(query)
        rows = {tuple(map(int, line.split())) for line in after.splitlines()}
        return before == after and len(rows) > 30 and ([(run["id"], run["submit"]) for run in told], rows)

    def test_hostile_names_stay_names(self):
        token = f"@{secrets.token_hex(8)}@"
        hostile = [f"x{token}1{token}RUNNING{token}\n999999{token}", "a|b|\n999998|999998|COMPLETED|", "tab\tand\nline",
                   "\x01\x02 bytes \x7f", "%s%n $(id) `id` ';--", "n" * 200]
        ids = {self.sbatch("-J", name): name for name in hostile}
        self.await_end(*ids)
        names = lambda: {run["id"]: run["name"] for run in self.ask(ids=ids)}
        # 20.11 may hear of a job's end before its name.
        wait_until(lambda: "allocation" not in names().values(), "slurmdbd has heard of their names")
        self.assertEqual(names(), ids)
        self.assertFalse({999998, 999999} & {run["id"] for run in self.ask()})

    def test_a_pending_job_has_what_it_requests(self):
        job = self.sbatch("-n2", "--mem=300M", "-b", "now+1hour")
        self.addCleanup(self.slurm.run, "scancel", str(job))
        # Since 23.02 it is ReqTRES.
        shown = self.slurm.run("scontrol", "-o", "show", "job", str(job)).stdout
        wanted = sorted(re.search(r" (?:Req)?TRES=(\S+)", shown)[1].split(","))
        told = wait_until(lambda: self.ask(ids=[job]), "slurmdbd knows it")
        self.assertEqual([(run["state"], sorted(run["tres_requested"].split(",")), run["tres"]) for run in told],
                         [("PENDING", wanted, told[0]["tres_requested"])])

    def test_all_runs_of_a_requeued_job(self):
        job = self.sbatch("--requeue", "-J", "twice", script="sleep 1000")

        def facts():
            """State, time of submission, time at which it may begin, and now."""
            text, now = self.slurm.ask([f"squeue -h -t all -j {job} -O State:.20,SubmitTime:.20,EligibleTime:.20", "date +%s"])
            state, submit, eligible = text.split()
            return state, int(submit), int(eligible), int(now)

        def runs_now():
            """A requeued job is held back for 121 s, from when its last run is cleaned up, which may be after it is pending again:
            slurmd refuses it in that very second. Runs are told apart by the second of their submit time."""
            state, submit, eligible, now = facts()
            if state == "PENDING" and now < eligible < now + 120:
                self.slurm.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)  # it may run by now
            return state == "RUNNING" and now > submit
        for _ in range(2):
            wait_until(runs_now, "it runs")
            self.slurm.run("scontrol", "requeue", str(job))
            wait_until(lambda: facts()[0] == "PENDING", "it waits again")
        self.slurm.run("scancel", str(job))
        runs = wait_until(lambda: (lambda told: len(told) == 3 and all(run["end"] for run in told) and told)(
            self.ask(ids=[job])), "three runs have ended")
        self.assertEqual([run["id"] for run in runs], [job] * 3)
        self.assertEqual(len({run["submit"] for run in runs}), 3)
        states = sorted(run["state"] for run in runs)
        self.assertEqual(states, ["CANCELLED", "REQUEUED", "REQUEUED"])
        self.assertEqual(sum(run["id"] == job for run in self.ask()), 3)

    def test_tasks_of_an_array_and_components_of_a_heterogeneous_job(self):
        array = self.sbatch("-J", "tasks", "--array=3,5,8-9", script="exit $SLURM_ARRAY_TASK_ID")
        waiting = self.sbatch("-J", "held-tasks", "--array=0-99%7", "--hold")
        het = int(self.slurm.run("sbatch", "--parsable", "-D/", "-o/dev/null", "-J", "parts", "-t5", "-pgpu", "-n1", ":",
                                 "-pgpu", "-n1", "--wrap", "true", user="alice").stdout)
        self.await_end(array, het)
        tasks = wait_until(lambda: (lambda told: len(told) == 4 and all(run["end"] for run in told) and told)(
            self.ask(ids=[array])), "all tasks have ended")
        self.assertEqual({(run["array"], run["task"], run["code"]) for run in tasks},
                         {(array, task, task) for task in (3, 5, 8, 9)})
        held, = self.ask(ids=[waiting])
        self.assertEqual((held["id"], held["array"], held["task"], held["tasks"], held["state"]),
                         (waiting, waiting, UNKNOWN, 100, "PENDING"))
        parts = self.ask(ids=[het])
        self.assertEqual({(run["id"], run["het"], run["offset"]) for run in parts}, {(het, het, 0), (het + 1, het, 1)})
        self.slurm.run("scancel", str(waiting))

    def test_a_job_that_was_cancelled_before_it_could_run(self):
        before = int(time.time())
        held = self.sbatch("-J", "never", "--hold")
        array = self.sbatch("-J", "never", "--hold", "--array=1-5")
        self.slurm.run("scancel", str(held), str(array))
        told = wait_until(lambda: (lambda told: {held, array} <= {run["id"] for run in told} and all(run["end"] for run in told) and told)(
            [run for run in self.ask(since=before - 1) if run["name"] == "never"]), "they are told")
        for run in told:
            self.assertEqual((run["state"], run["start"], run["nodes"], run["cpu"]), ("CANCELLED", 0, "", -1))
            self.assertEqual(run["State"], "CANCELLED by 0")

    def test_times_are_utc_whatever_the_zone(self):
        """On the day when clocks go back: 05:30 and 06:30 UTC are both 01:30 in New York."""
        jobs = [self.sbatch("-J", f"clocks{i}") for i in range(2)]
        self.await_end(*jobs)
        begins = [1762061400, 1762065000]
        self.addCleanup(self.sql, f"DELETE FROM sandbox_job_table WHERE time_submit IN ({begins[0]}, {begins[1]})")
        for job, begin in zip(jobs, begins):
            self.sql(f"UPDATE sandbox_job_table SET time_submit = {begin}, time_eligible = {begin}, "
                     f"time_start = {begin}, time_end = {begin} + 60 WHERE id_job = {job}")
        prefix = self.as_user("alice").replace(" sh -c", " env TZ=America/New_York sh -c")
        for options in ({"TZ": "America/New_York"}, {"TZ": "Australia/Lord_Howe"}, {"prefix": prefix, "place": ""}):
            for job, begin in zip(jobs, begins):
                told = self.ask(begin - 60, begin + 120, **options)
                self.assertEqual([(run["id"], run["submit"], run["start"], run["end"]) for run in told],
                                 [(job, begin, begin, begin + 60)], options)

    def test_the_format_is_not_among_the_arguments_of_any_process(self):
        script = pathlib.Path(self.bin, "sacct").read_text()
        with tempfile.TemporaryDirectory() as directory:
            pathlib.Path(directory, "sacct").write_text(
                script.replace("exec /", f"tr '\\0' ' ' </proc/$$/cmdline >>{directory}/seen; exec /"))
            pathlib.Path(directory, "sacct").chmod(0o755)
            self.assertTrue(self.ask(place=directory))
            seen = pathlib.Path(directory, "seen").read_text()
        self.assertIn("--delimiter @", seen)
        self.assertNotIn("WorkDir", seen)

    def test_slurmdbd_refuses_so_wide_a_time(self):
        """To all but operators, so as a user; what is left is asked for in smaller windows."""
        options = {"prefix": self.as_user("alice"), "place": ""}
        self.addCleanup(self.set_dbd, "")
        self.set_dbd("MaxQueryTimeRange=02:00:00")
        wait_until(lambda: "MaxQueryTimeRange" in self.probe("ask", 1, int(time.time()), check=False,
                                                             **options).stderr, "it is refused")
        refused = self.probe("ask", int(time.time()) - 86400, int(time.time()), check=False, **options)
        self.assertIn("too_big: ", refused.stderr)
        job = self.ask(ids=[run["id"] for run in self.ask()][:1], **options)
        self.assertTrue(job)
        with tempfile.TemporaryDirectory() as directory:
            done = self.probe("complete", int(time.time()) - 86400, f"{directory}/store.db", **options)
            questions, records = map(int, done.stdout.split())
            self.assertGreater(records, 30)
            self.assertGreaterEqual(questions, 12)

    def test_slurmdbd_away_is_a_failure_and_no_accounting_another(self):
        conf = pathlib.Path(self.slurm.env["SANDBOX_STATE"], "etc/slurm.conf")
        other = conf.with_name("away.conf")
        for lines, words in (("AccountingStoragePort=1\n", ("failed: ", "is slurmdbd running?")),
                             ("AccountingStorageType=accounting_storage/none\n", ("unsupported: ", "no accounting"))):
            text = "".join(line for line in conf.read_text().splitlines(True)
                           if not line.startswith(("AccountingStorageEnforce", lines.split("=")[0] + "=")))
            other.write_text(text + lines)
            prefix = self.as_user("root").replace(" sh -c", f" env SLURM_CONF={self.slurm.inside('etc/away.conf')} sh -c")
            done = self.probe("ask", int(time.time()) - 60, int(time.time()), prefix=prefix, place="", check=False)
            self.assertEqual(done.returncode, 1)
            for word in words:
                self.assertIn(word, done.stderr)
        other.unlink()

    def test_a_store_is_completed_and_saying_it_again_changes_nothing(self):
        """All that sacct tells is there, with what was used."""
        with tempfile.TemporaryDirectory() as directory:
            store, first = f"{directory}/store.db", int(time.time()) - 3 * 86400
            told = {(run["id"], run["submit"]) for run in self.ask(since=first, until=int(time.time()))}
            self.probe("complete", first, store)
            rows = self.rows(store)
            self.assertFalse(told - set(rows))
            self.probe("complete", first, store)
            again = self.rows(store)
            ended = {key: row for key, row in rows.items() if row[1]}
            self.assertEqual({key: again[key] for key in ended}, ended)
            self.assertTrue(any(row[2] for row in rows.values()))

    @staticmethod
    def rows(store):
        with sqlite3.connect(f"file:{store}?mode=ro", uri=True) as connection:
            return {(job_id, submit): row for job_id, submit, *row in connection.execute(
                "SELECT job_id, submit_time, state, end_time, memory_peak_bytes, name, user, account FROM jobs")}


for suite in SUITES:
    globals()[f"On_{suite}"] = type(f"On_{suite}", (Accounting, unittest.TestCase), {"suite": suite})


if __name__ == "__main__":
    import tap
    tap.main()
