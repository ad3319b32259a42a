#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""From a Lustre server's job_stats to accounts and users: the agent on a tree of files in Lustre's format, a real Prometheus that
scrapes it, a real Slurm whose jobs they are, and sonde lustre that asks both."""
import http.server
import pathlib
import re
import tempfile
import threading
import time
import unittest

from cluster import Cluster
from lustre import Lustre, Target
from prometheus import Prometheus
from sonde import Agent, Exporter, wait_until

MIB = 1 << 20


class Flow:
    """Stands between the agent and Prometheus. The files do not change: they hold what each id moves in a second. Each scrape is
    told what would be there if that had gone on evenly until then, and at which moment: the rate is the same between any two."""

    def __init__(self, answer):
        flow = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                body = flow.text(answer.text).encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.began_ms = int(time.time() * 1000)
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def text(self, text):
        now_ms = int(time.time() * 1000)
        lines = text.splitlines(True)
        return "".join(re.sub(r" (\d+)$", lambda value: f" {int(value[1]) * (now_ms - self.began_ms) / 1000} {now_ms}", line)
                       if line.startswith("lustre_job_") else line for line in lines)

    def end(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class Site(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.end)
        for words in (["add", "account", "bio"], ["add", "user", "bob", "account=bio"]):
            cls.cluster.run("sacctmgr", "-iQ", *words, check=False)
        wait_until(lambda: cls.cluster.run("sbatch", "--test-only", "-p", "cpu", "--wrap=true", user="bob", check=False).returncode == 0,
                   "Slurm knows bob")
        cls.jobs = [cls.cluster.batch("sleep infinity", user=user) for user in ("alice", "alice", "bob")]
        proc = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        first, second, metadata = (Target(proc, f"scratch-{name}") for name in ("OST0000", "OST000a", "MDT0000"))
        alice1, alice2, bob = map(str, cls.jobs)
        amounts = {
            first: {alice1: {"write_bytes": 100 * MIB}, bob: {"read_bytes": 30 * MIB}, "rsync.0": {"read_bytes": 10 * MIB}},
            second: {alice1: {"write_bytes": 20 * MIB, "read_bytes": 7 * MIB}, alice2: {"write_bytes": 5 * MIB}},
            metadata: {alice2: {"open": 300, "close": 300, "getattr": 40}, "rsync.0": {"getattr": 500}},
        }
        for target, ids in amounts.items():
            for job_id, counters in ids.items():
                target.set(job_id, **counters)
            target.write()
        cls.agent = cls.enterClassContext(Agent(f"--path.procfs={proc}", f"--path.sysfs={proc}/sys", "-t", "250ms", "--profile.socket="))
        cls.flow = Flow(wait_until(lambda: cls.answer_of(cls.agent), "the agent has read all files"))
        cls.addClassCleanup(cls.flow.end)
        cls.prometheus = Prometheus(cls.cluster.env["SANDBOX_ROOT"], "scrape_configs:\n- job_name: lustre\n"
                                    "  scrape_interval: 2s\n  static_configs:\n"
                                    f"  - targets: ['127.0.0.1:{cls.flow.port}']\n")
        cls.addClassCleanup(cls.prometheus.end)
        cls.lustre = cls.enterClassContext(Lustre(f"--prometheus.url={cls.prometheus.url}", "--prometheus.timeout=5m", "--slurm.poll-limit=1ms",
                                                  "--collector.lustre_jobs", path=cls.cluster.env["SANDBOX_BIN"]))
        cls.exporter = cls.enterClassContext(Exporter(f"--prometheus.url={cls.prometheus.url}", "--prometheus.timeout=5m", "--slurm.poll-limit=1ms",
                                                      path=cls.cluster.env["SANDBOX_BIN"]))

    @staticmethod
    def answer_of(agent):
        answer = agent.metrics()
        return answer if answer.families()["sonde_agent_lustre_targets"].get(()) == 3 else None

    def told(self, family):
        return {tuple(text for _, text in labels): value for labels, value in self.lustre.metrics().families()[family].items()}

    def assert_rates(self, family, rates):
        told = wait_until(lambda: (told := self.told(family)).keys() == rates.keys() and told, f"{family} of {rates.keys()}")
        for labels, rate in rates.items():
            self.assertAlmostEqual(told[labels] / rate, 1, delta=1e-6, msg=labels)

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
        self.assertAlmostEqual(families["sonde_job_lustre_write_mean_bytes"][of] / MIB, 1, delta=1e-6)
        self.assertEqual(families["sonde_job_lustre_small_io_ratio"][of], 0)


if __name__ == "__main__":
    import tap
    tap.main()
