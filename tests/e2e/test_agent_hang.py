#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent while a part of it hangs. It samples a copy of a recorded node; the sampler hangs when it opens a file of a cgroup
that is a FIFO, until the test opens the other end."""
import os
import pathlib
import shutil
import socket
import tempfile
import unittest

from clock import Clock
from sonde import ROOT, Agent, wait_until

TICK = 10
RECORDED = ROOT / "tests/golden/agent/slurm-22.05-v1"
JOB = "4711"


class Hang(unittest.TestCase):
    def setUp(self):
        self.place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory(prefix="sonde-hang-")))
        self.node = self.place / "node"
        shutil.copytree(RECORDED, self.node, symlinks=True)
        self.users = self.node / "sys/fs/cgroup/memory/slurm_n1/uid_712001"
        self.clock = self.enterContext(Clock())

    def agent(self, *flags, env=None, **arguments):
        return self.enterContext(Agent(f"--path.procfs={self.node}/proc", f"--path.sysfs={self.node}/sys", "--node.name=n1",
                                       "--profile.socket=", "-t", str(TICK), *flags, env=self.clock.env | (env or {}),
                                       **arguments))

    def hold(self):
        """The next look at the cgroups of jobs hangs."""
        job = self.place / "job_4999"
        job.mkdir()
        os.mkfifo(job / "memory.usage_in_bytes")
        job.rename(self.users / job.name)

    def release(self):
        """A writer for whoever waits, and for all that come later."""
        fifo = self.users / "job_4999/memory.usage_in_bytes"
        self.addCleanup(os.close, os.open(fifo, os.O_RDWR | os.O_NONBLOCK))
        os.rename(fifo, self.place / "fifo")

    def wait_passing(self, condition, what):
        def look():
            self.clock.advance(TICK / 2)
            return condition()
        return wait_until(look, what)

    def wait_health(self, agent, status):
        self.wait_passing(lambda: agent.get("/-/healthy").status == status, f"health {status}")

    def test_a_sampler_that_hangs_is_noticed_and_its_values_are_withdrawn(self):
        agent = self.agent()
        wait_until(lambda: agent.job(JOB), "the job")
        self.assertEqual(agent.get("/-/healthy").status, 200)
        self.hold()
        self.wait_health(agent, 503)
        self.assertIn("the sampler hangs", agent.get("/-/healthy").text)
        told = agent.metrics()
        self.assertEqual(told.value("sonde_agent_up"), 0)
        self.assertFalse(agent.job(JOB))
        self.assertNotIn("\nsonde_agent_jobs", told.text)
        self.assertGreater(told.value("sonde_agent_sample_age_seconds"), 5 * TICK)
        self.release()
        self.wait_health(agent, 200)
        wait_until(lambda: agent.job(JOB), "the job")
        self.assertEqual(agent.metrics().value("sonde_agent_up"), 1)

    def test_a_first_sample_that_never_ends_is_noticed(self):
        self.hold()
        agent = self.agent()
        self.assertEqual(agent.get("/-/healthy").status, 200)
        self.wait_health(agent, 503)
        self.assertEqual(agent.get("/-/ready").status, 503)
        self.release()
        self.wait_health(agent, 200)

    def test_the_sampler_feeds_the_watchdog_of_systemd(self):
        systemd = self.enterContext(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        systemd.setblocking(False)
        systemd.bind(str(self.place / "notify"))

        def is_fed():
            try:
                return systemd.recv(100) == b"WATCHDOG=1"
            except BlockingIOError:
                return False
        agent = self.agent(env={"NOTIFY_SOCKET": str(self.place / "notify"), "WATCHDOG_USEC": "20000000"})
        for _ in range(3):
            self.wait_passing(is_fed, "a message")
        self.hold()
        self.wait_health(agent, 503)
        while is_fed():
            pass
        self.clock.advance(600)
        self.assertEqual(agent.metrics().value("sonde_agent_up"), 0)
        self.assertFalse(is_fed())
        self.release()
        self.wait_passing(is_fed, "a message")


if __name__ == "__main__":
    import tap
    tap.main()
