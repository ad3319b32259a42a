#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Job tracing whole: sonde run, sealed by a real munged, to the real exporter, beside a real Slurm's jobs."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import unittest

from clock import Clock
from slurm import SUITES, Slurm
from sonde import DEADLINE, SONDE, Exporter, wait_until


class OnSlurm:
    """The tests; a class for each suite is made below."""

    suite = None

    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm(cls.suite)
        cls.addClassCleanup(cls.slurm.end)
        cls.socket = f"{cls.slurm.env['SANDBOX_STATE']}/run/munge/socket"
        first, second = map(cls.running_job, ("sim", "train"))
        cls.job, cls.owner, cls.nodes = int(first[0]), first[1], int(first[3])
        cls.traced = second  # what is posted of a job stays: this one's is of its command alone
        cls.other = "mallory" if cls.owner != "mallory" else "alice"
        cls.exporter = Exporter("--trace.enabled", f"--trace.munge-socket={cls.socket}", "--trace.rate=60",
                                path=cls.slurm.env["SANDBOX_BIN"])
        cls.addClassCleanup(cls.exporter.stop)
        cls.exporter.metrics()

    @classmethod
    def running_job(cls, name):
        """Id, user, CPUs and nodes of a seeded job that runs for as long as the cluster does."""
        job_id = pathlib.Path(cls.slurm.env["SANDBOX_STATE"], "jobs", name).read_text().strip()
        return cls.slurm.run("squeue", "-h", "-j", job_id, "-o", "%A %u %C %D").stdout.split()

    def seal(self, user, **members):
        text = json.dumps(dict({"job_id": self.job, "pid": 5, "cpus": 50, "threads": 2, "mem": 1000, "hostname": "n1",
                                "period": 3600}, **members))
        return self.slurm.run("munge", f"--socket={self.slurm.inside('run/munge/socket')}", "-s", text, user=user).stdout

    def post(self, body):
        return self.exporter.get("/trace", data=body.encode(), method="POST")

    def value(self, name, labels):
        return self.exporter.metrics().samples().get(f"{name}{{{labels}}}")

    def test_a_command_is_traced_beside_what_its_job_was_given(self):
        script = "import sys, time\nwhile time.process_time() < 1: pass\nprint('ready', flush=True)\nsys.stdin.readline()"
        job, owner, cpus, _ = self.traced
        clock = self.enterContext(Clock(stands=1800000000))
        command = self.enterContext(subprocess.Popen(
            [SONDE, "run", f"--munge-socket={self.socket}", f"--endpoint={self.exporter.url}/trace", "--sample-rate=600",
             f"--jobid={job}", "--", sys.executable, "-c", script], env=dict(os.environ, **clock.env),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
        self.addCleanup(command.kill)
        self.assertEqual(command.stdout.readline(), "ready\n")
        clock.advance(1)  # when the first sample is due
        labels = f'jobid="{job}",username="{owner}"'
        wait_until(lambda: float(self.value("slurm_proc_cpu_usage", labels) or 0) > 95, "its use is shown")
        self.assertEqual(self.value("slurm_job_cpu_alloc", f'jobid="{job}"'), cpus)
        self.assertGreater(float(self.value("slurm_proc_mem_usage", labels)), 100000)
        self.assertIn(job, self.exporter.get("/trace").text)
        command.send_signal(signal.SIGTERM)
        self.assertEqual(command.wait(DEADLINE), 128 + signal.SIGTERM)
        self.assertEqual(command.stderr.read(), "")

    def test_hosts_are_added_up_and_the_owner_is_slurms(self):
        labels = f'jobid="{self.job}",username="{self.owner}"'
        for host in ("n1", "n2", "n3"):
            answer = self.post(self.seal(self.owner, hostname=host, threads=700, username="root"))
            self.assertEqual(answer.status, 200, answer.text)
        # others of these tests add a few
        wait_until(lambda: 2100 <= float(self.value("slurm_proc_threadcount", labels) or 0) < 2200, "three times 700")
        pids = [series for series in self.exporter.metrics().samples() if series.startswith(f'slurm_proc_pid{{jobid="{self.job}"')]
        self.assertEqual(len(pids), self.nodes)  # no more hosts than the job has nodes, whatever is posted

    def test_nobody_else_can_speak_for_a_job(self):
        self.assertEqual(self.post(self.seal(self.other, hostname="forged")).status, 403)
        self.assertEqual(self.post(json.dumps({"job_id": self.job, "pid": 5, "cpus": 1})).status, 401)
        sealed = self.seal(self.owner, hostname="once", threads=1)
        self.assertEqual(self.post(sealed).status, 200)
        self.assertEqual(self.post(sealed).status, 403)  # a credential is good for one post
        self.assertEqual(self.post(sealed.replace("A", "B")).status, 403)
        self.assertNotIn("forged", self.exporter.metrics().text)

    def test_a_job_that_is_not_in_the_queue_is_not_shown(self):
        self.assertEqual(self.post(self.seal(self.owner, job_id=4000000000)).status, 202)
        self.assertNotIn('jobid="4000000000"', self.exporter.metrics().text)


for suite in SUITES:
    globals()[f"On_{suite}"] = type(f"On_{suite}", (OnSlurm, unittest.TestCase), {"suite": suite})


if __name__ == "__main__":
    import tap
    tap.main()
