#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""From a Lustre server's job_stats to accounts and users: the agent on a tree of files in Lustre's format, a real Prometheus that
scrapes it, a real Slurm whose jobs they are, and sonde lustre that asks both."""
import pathlib
import statistics
import tempfile
import threading
import time
import unittest

from cluster import Cluster
from lustre import Lustre, Target
from prometheus import Prometheus
from sonde import Agent, Exporter, wait_until

SCRAPE_SECONDS = 2
TURNS_PER_SECOND = 50
MIB = 1 << 20


class Load(threading.Thread):
    """Writes into the files what would be there if each id moved so much per second, evenly."""

    def __init__(self, rates):
        super().__init__()
        self.rates = rates  # target → {id: {counter: per second}}
        self.over = threading.Event()

    def run(self):
        began = time.monotonic()
        while not self.over.wait(1 / TURNS_PER_SECOND):
            seconds = time.monotonic() - began
            for target, ids in self.rates.items():
                for job_id, counters in ids.items():
                    target.set(job_id, **{name: int(rate * seconds) for name, rate in counters.items()})
                target.write()

    def end(self):
        self.over.set()
        self.join()


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.end)
        for words in (["add", "account", "bio"], ["add", "user", "bob", "account=bio"]):
            cls.cluster.run("sacctmgr", "-iQ", *words, check=False)
        wait_until(lambda: cls.cluster.run("sbatch", "--test-only", "-p", "cpu", "--wrap=true", user="bob", check=False).returncode == 0,
                   "Slurm knows bob")
        cls.jobs = [cls.cluster.batch("sleep 1000", user=user) for user in ("alice", "alice", "bob")]
        proc = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        first, second, metadata = (Target(proc, f"scratch-{name}") for name in ("OST0000", "OST000a", "MDT0000"))
        alice1, alice2, bob = map(str, cls.jobs)
        cls.load = Load({
            first: {alice1: {"write_bytes": 100 * MIB}, bob: {"read_bytes": 30 * MIB}, "rsync.0": {"read_bytes": 10 * MIB}},
            second: {alice1: {"write_bytes": 20 * MIB, "read_bytes": 7 * MIB}, alice2: {"write_bytes": 5 * MIB}},
            metadata: {alice2: {"open": 300, "close": 300, "getattr": 40}, "rsync.0": {"getattr": 500}},
        })
        cls.load.start()
        cls.addClassCleanup(cls.load.end)
        cls.agent = cls.enterClassContext(Agent(f"--path.procfs={proc}", f"--path.sysfs={proc}/sys", "-t", "250ms", "--profile.socket="))
        cls.prometheus = Prometheus(cls.cluster.env["SANDBOX_ROOT"], "scrape_configs:\n- job_name: lustre\n"
                                    f"  scrape_interval: {SCRAPE_SECONDS}s\n  static_configs:\n"
                                    f"  - targets: ['127.0.0.1:{cls.agent.port}']\n")
        cls.addClassCleanup(cls.prometheus.end)
        cls.lustre = cls.enterClassContext(Lustre(f"--prometheus.url={cls.prometheus.url}", "--slurm.poll-limit=1ms",
                                                  "--collector.lustre_jobs", path=cls.cluster.env["SANDBOX_BIN"]))
        cls.exporter = cls.enterClassContext(Exporter(f"--prometheus.url={cls.prometheus.url}", "--slurm.poll-limit=1ms",
                                                      path=cls.cluster.env["SANDBOX_BIN"]))

    def looks(self, family):
        """labels → the values of several looks, one after each scrape."""
        seen, found = 0, {}
        while seen < 5:
            before = self.prometheus.query("timestamp(up)")
            wait_until(lambda: self.prometheus.query("timestamp(up)") != before, "another scrape")
            samples = self.lustre.metrics().families()[family]
            for labels, value in samples.items():
                found.setdefault(tuple(text for _, text in labels), []).append(value)
            seen += bool(samples)
        return found

    def assert_rates(self, family, rates):
        """The median of five looks, because an agent's tick and a scrape drift past each other."""
        looks = self.looks(family)
        self.assertEqual(looks.keys(), rates.keys())
        for labels, rate in rates.items():
            self.assertAlmostEqual(statistics.median(looks[labels]) / rate, 1, delta=0.1, msg=(labels, looks[labels]))

    def test_throughput_of_accounts_and_users_is_what_was_written_into_the_files(self):
        self.assert_rates("cluster_job_write_throughput_bytes", {("physics", "alice"): 125 * MIB})
        self.assert_rates("cluster_job_read_throughput_bytes", {("physics", "alice"): 7 * MIB, ("bio", "bob"): 30 * MIB})

    def test_the_exporter_tells_the_same(self):
        families = ("cluster_job_write_throughput_bytes", "cluster_proc_read_throughput_bytes")
        wait_until(lambda: all(self.lustre.metrics().families()[family].keys() == self.exporter.metrics().families()[family].keys() != set()
                               for family in families), "both tell of the same")

    def test_programs_outside_of_jobs_are_told_by_their_user(self):
        self.assert_rates("cluster_proc_read_throughput_bytes", {("rsync", "root", "root"): 10 * MIB})

    def test_metadata_is_told_by_target(self):
        self.assert_rates("cluster_job_metadata_operations", {("physics", "alice", "scratch-MDT0000"): 640})
        self.assert_rates("cluster_proc_metadata_operations", {("rsync", "root", "root", "scratch-MDT0000"): 500})

    def test_rates_of_a_job(self):
        wait_until(lambda: self.lustre.metrics().families()["sonde_job_lustre_write_mean_bytes"], "there are details")
        families = self.lustre.metrics().families()
        of = (("job_id", str(self.jobs[0])),)
        self.assertAlmostEqual(families["sonde_job_lustre_write_mean_bytes"][of] / MIB, 1, delta=0.1)
        self.assertEqual(families["sonde_job_lustre_small_io_ratio"][of], 0)


if __name__ == "__main__":
    import tap
    tap.main()
