#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""sonde admin reconcile on real clusters: all agrees, and what is changed on purpose is found and named."""
import contextlib
import json
import pathlib
import sqlite3
import subprocess
import tempfile
import time
import unittest

import test_store
from slurm import SUITES
from sonde import DEADLINE, SONDE, Exporter, wait_until

HOURS = 2


def setUpModule():
    global FLEET
    FLEET = {}
    for suite in SUITES:
        FLEET[suite] = unittest.enterModuleContext(contextlib.closing(test_store.Named(suite, suite)))


class Plain(Exporter):
    @staticmethod
    def complete(flags):
        return flags


class Reconcile(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def reconcile(self, cluster, store, *flags):
        done = subprocess.run([SONDE, "admin", "reconcile", f"--store=sqlite:{store}", "--since=2020-01-01", "--json",
                               f"--slurm.bin-path={cluster.env['SANDBOX_BIN']}", *flags],
                              capture_output=True, text=True, timeout=DEADLINE)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.returncode, json.loads(done.stdout)

    def exporter(self, cluster, store):
        return Plain("--source=cli", f"--slurm.bin-path={cluster.env['SANDBOX_BIN']}", f"--store=sqlite:{store}",
                     "--store.interval=1s", "--store.history-interval=1s", "--slurm.poll-limit=1s")

    @staticmethod
    def has_clusters(store):
        with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            return connection.execute("SELECT count(*) FROM cluster").fetchone()[0]

    @staticmethod
    def wait_state(cluster, job, state):
        wait_until(lambda: cluster.run("squeue", "-h", "-j", str(job), "-o", "%T").stdout.strip() == state, f"{job} is {state}")

    def run_jobs(self, cluster):
        """Of all kinds; they have ended when it returns."""
        jobs = [cluster.submit("true"), cluster.submit("sleep 2; exit 3", user="bob"), cluster.submit("true", "--array=1-3"),
                cluster.submit("true", "-n1", ":", "-n2")]
        suspended = cluster.submit("sleep 3", "-n2")
        self.wait_state(cluster, suspended, "RUNNING")
        cluster.run("scontrol", "suspend", str(suspended))
        self.wait_state(cluster, suspended, "SUSPENDED")
        cluster.run("scontrol", "resume", str(suspended))
        again = cluster.submit("sleep 300", "--requeue")
        self.wait_state(cluster, again, "RUNNING")
        cluster.run("scontrol", "requeue", str(again))
        wait_until(lambda: "RUNNING" not in cluster.run("squeue", "-h", "-j", str(again), "-o", "%T").stdout, "it is requeued")
        cluster.run("scancel", str(again))
        held = cluster.submit("true", "--hold")
        cluster.run("scancel", str(held))
        cluster.wait_ended(*jobs, suspended, again, held)

    def shift_back(self, cluster):
        """Two hours, so that slurmdbd can roll them up; slurmctld has forgotten the jobs then."""
        wait_until(lambda: not cluster.run("squeue", "-h", "-t", "all").stdout, "slurmctld has forgotten its jobs")
        name = cluster.cluster
        back = {"job": ("submit", "eligible", "start", "end"), "suspend": ("start", "end"), "resv": ("start", "end")}
        changes = [f"UPDATE {name}_{table}_table SET " + ", ".join(
            f"time_{word} = IF(time_{word}, time_{word} - {HOURS * 3600}, 0)" for word in words) for table, words in back.items()]
        changes.append(f"UPDATE {name}_event_table SET time_start = time_start - 18000 WHERE node_name = ''")
        cluster.run("mariadb", "--no-defaults", "-S", cluster.inside("mysql/socket"), "slurm_acct_db", "-e", ";".join(changes))
        test_store.Usage.roll_up(cluster)

    def test_all_agrees_and_what_is_changed_is_found(self):
        for suite, cluster in FLEET.items():
            with self.subTest(suite=suite):
                self.check(cluster, self.directory / f"{suite}.db")

    def check(self, cluster, store):
        cluster.run("scontrol", "create", "reservation", "reservationname=idle", "starttime=now", "duration=1", "nodes=c4", "users=alice",
                    "flags=ignore_jobs")
        self.run_jobs(cluster)
        wait_until(lambda: "idle" not in cluster.run("scontrol", "show", "reservation").stdout, "the reservation is over")
        self.shift_back(cluster)
        with self.exporter(cluster, store) as exporter:
            wait_until(lambda: self.has_clusters(store), "the store has a cluster")

            def agrees():
                test_store.Usage.roll_up(cluster)  # twice at once counts double
                status, self.found = self.reconcile(cluster, store, f"--exporter.url={exporter.url}/metrics")
                reasons = {row["reason"] for row in self.found["differences"]}
                return status == 0 and "not_polled" not in reasons and self.found["compared"]["runs"] == len(cluster.accounted())
            try:
                wait_until(agrees, "all agrees")
            except AssertionError:
                self.fail(self.found)
        self.assertGreaterEqual(self.found["compared"]["runs"], 9)
        self.assertEqual(self.found["compared"]["usage"], 2)
        self.assertGreater(self.found["compared"]["ended"], 2)
        self.assertEqual({row["reason"] for row in self.found["differences"] if row["comparison"] == "usage"} - {"suspended"},
                         {"idle_reserved"})
        for change, comparison, named in (
                ("UPDATE job SET end_time = end_time + 5 WHERE id = (SELECT min(id) FROM job WHERE node_list IS NOT NULL)",
                 "runs", "end differs"),
                ("DELETE FROM job WHERE id = (SELECT min(id) FROM job)", "runs", "missing in the store"),
                ("UPDATE job SET job_id = job_id + 1000000 WHERE id = (SELECT min(id) FROM job)", "runs", "not in sacct"),
                ("UPDATE job SET billing = billing + 100 WHERE user = (SELECT id FROM text WHERE value = 'bob')",
                 "usage", "billing seconds differ"),
                ("UPDATE ended SET count = count + 1", "ended", "counter differs from sacct")):
            with self.subTest(change=change):
                self.check_fault(cluster, store, change, comparison, named)

    def check_fault(self, cluster, store, change, comparison, named):
        copy = self.directory / "copy.db"
        copy.unlink(missing_ok=True)
        with contextlib.closing(sqlite3.connect(store)) as source, contextlib.closing(sqlite3.connect(copy)) as target:
            source.backup(target)
            self.assertGreater(target.execute(change).rowcount, 0)
            target.commit()
        status, found = self.reconcile(cluster, copy)
        self.assertEqual(status, 1)
        self.assertIn((comparison, named, "unexplained"),
                      {(row["comparison"], row["difference"], row["reason"]) for row in found["differences"]})
        kept = pathlib.Path(f"{copy}.reconcile.{cluster.cluster}").read_text().split()
        self.assertEqual(kept[0], "time")
        self.assertLess(abs(int(kept[1]) - time.time()), DEADLINE)

    def test_what_cannot_be_read_is_an_error(self):
        cluster = next(iter(FLEET.values()))
        for flags, words in ((["--store=sqlite:/nonexistent/sonde.db"], "there is no store"),
                             (["--since=x"], "x")):
            done = subprocess.run([SONDE, "admin", "reconcile", f"--slurm.bin-path={cluster.env['SANDBOX_BIN']}", *flags],
                                  capture_output=True, text=True, timeout=DEADLINE)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)


if __name__ == "__main__":
    import tap
    tap.main()
