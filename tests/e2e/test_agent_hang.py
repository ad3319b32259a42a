#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent while a part of it hangs. It samples a copy of a recorded node; the sampler hangs when it opens a file of a cgroup
that is a FIFO, until the test opens the other end."""
import os
import pathlib
import shutil
import signal
import socket
import tempfile
import time
import unittest

from clock import Clock
from sonde import DEADLINE, ROOT, Agent, own_host, wait_until

TICK = 10
RECORDED = ROOT / "tests/golden/agent/slurm-22.05-v1"
JOB, OTHER_JOB = "4711", "4712"


class HangTest(unittest.TestCase):
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


class Hang(HangTest):
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


class Stop(HangTest):
    """SIGTERM while a part hangs. Time stands still until the test moves it: whatever ends before that, ends by itself."""

    def setUp(self):
        super().setUp()
        self.clock = self.enterContext(Clock(stands=int(time.time())))

    def agent(self, *flags, **arguments):
        return super().agent("--log.level=debug", *flags, **arguments)

    def end_job(self, user, job_id):
        for directory in self.node.glob(f"sys/fs/cgroup/*/slurm_n1/uid_{user}/job_{job_id}"):
            shutil.rmtree(directory)

    def hang_on_signal(self, agent, part):
        """Until the agent waits for that part."""
        agent.process.send_signal(signal.SIGTERM)
        agent.wait_log(f'msg="waiting for a part to stop" part={part}\n')

    def assert_ends_without(self, agent, part):
        """Two seconds after the signal, and with the status of any other stop."""
        self.assertNotIn("level=error", agent.log())
        self.clock.advance(2)
        self.assertEqual(agent.process.wait(DEADLINE), 0, agent.log())
        self.assertIn(f'msg="a part did not stop in time; the process ends without it" part={part}\n', agent.log())

    def test_a_sampler_that_hangs_does_not_keep_the_agent(self):
        self.hold()
        agent = self.agent()
        self.hang_on_signal(agent, "sampler")
        self.assert_ends_without(agent, "sampler")

    def test_a_second_signal_gives_no_more_time(self):
        self.hold()
        agent = self.agent()
        self.hang_on_signal(agent, "sampler")
        self.clock.advance(1)
        agent.process.send_signal(signal.SIGTERM)
        self.clock.advance(1)
        self.assertEqual(agent.process.wait(DEADLINE), 0, agent.log())

    def test_what_ended_jobs_used_is_on_disk_although_the_sampler_and_the_exporter_hang(self):
        exporter = self.enterContext(socket.create_server((own_host(), 8080)))
        token, spool = self.place / "token", self.place / "spool"
        token.write_text("s3cret\n")
        agent = self.agent("--ingest.url=http://{}:{}".format(*exporter.getsockname()), f"--ingest.token-file={token}",
                           f"--ingest.spool-dir={spool}", "--ingest.timeout=1h")
        wait_until(lambda: agent.job(JOB) and agent.job(OTHER_JOB), "the jobs")
        self.end_job("712001", JOB)
        wait_until(lambda: agent.metrics().value('sonde_agent_ingest_waiting{place="disk"}') == 1, "a record on disk")
        self.clock.advance(1)  # the pause before a post
        self.enterContext(exporter.accept()[0])
        self.end_job("712002", OTHER_JOB)
        wait_until(lambda: agent.metrics().value('sonde_agent_ingest_waiting{place="memory"}') == 1, "a record in memory")
        self.hold()
        self.wait_health(agent, 503)
        self.hang_on_signal(agent, "sampler")
        self.assert_ends_without(agent, "sampler")
        spooled = b"".join(file.read_bytes() for file in spool.iterdir())
        for job_id in JOB, OTHER_JOB:
            self.assertIn(f'"job_id":{job_id},'.encode(), spooled)


if __name__ == "__main__":
    import tap
    tap.main()
