#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent on a real Slurm with cgroup v1: jobs whose behaviour is known show just that, also when they end between two
samples. tests/vm does the same under cgroup v2."""
import time

from clock import Clock
from cluster import Cluster, JobTest, processes_of
from sonde import Agent, wait_until
from capabilities import need

MIB = 1 << 20
TOLERANCE = 0.02


def setUpModule():
    global CLUSTER
    CLUSTER = Cluster()


def tearDownModule():
    CLUSTER.run("scancel", "-u", "alice", check=False)
    CLUSTER.end()


class Behaviour(JobTest):
    """One agent for all, which ticks when the test moves its clock: what is seen without is seen between two ticks."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = CLUSTER
        cls.clock = cls.enterClassContext(Clock())
        cls.agent = cls.enterClassContext(Agent("-t", "10m", "--job.linger=24h", env=cls.clock.env))
        cls.burn = CLUSTER.submit("burn", "10", "1")  # during the other tests

    def near(self, value, expected, tolerance=TOLERANCE):
        self.assertLessEqual(abs(value - expected), tolerance * expected, f"{value} is not {expected}")

    def tick(self):
        """Four of them: files are looked at in every fourth."""
        self.wait_ticks(self.agent, 4, self.clock, 600)

    def wait_ended(self, job_id):
        wait_until(lambda: "jobs_rss" not in self.agent.job(job_id), f"the agent knows that job {job_id} has ended")
        return self.agent.job(job_id)

    def test_memory_files_and_threads_are_those_of_the_job(self):
        hold = self.submit("hold", "300", flags=["--mem=400M"])
        files = self.submit("files", "500", CLUSTER.place)
        threads = self.submit("threads", "40")
        for job_id in (hold, files, threads):
            self.wait_said(job_id, r"\d+ (MiB|files|threads)")
            self.wait_family(self.agent, job_id, "jobs_rss")
        wait_until(lambda: len(processes_of(threads)) == 2, "the extern step of the job has a process too")
        self.tick()
        job = self.agent.job(hold)
        self.near(job["jobs_rss"][()], 300, 0.03)  # and the extern step's sleep
        self.near(job["sonde_job_memory_anonymous_bytes"][()], 300 * MIB)
        self.assertEqual(job["sonde_job_memory_limit_bytes"][()], 400 * MIB)
        self.assertGreaterEqual(job["sonde_job_memory_peak_bytes"][()], 300 * MIB)
        job = self.agent.job(files)
        self.near(job["jobs_opened_files"][()], 501)  # its output is one
        job = self.agent.job(threads)
        self.near(job["jobs_thread_count"][("proc_name", "behave"),], 40)
        self.assertEqual(job["jobs_spawned_processes"][()], 2)
        # Her name is known in the sandbox alone.
        self.assertEqual(job["sonde_job_info"], {(("account", "physics"), ("user", "2001")): 1.0})

    def test_a_gigabyte_written_at_once_is_seen_although_the_job_has_ended(self):
        need("taskstats")
        job_id = self.submit_known([self.agent], "write", "1024", f"{CLUSTER.place}/gigabyte")
        wait_until(lambda: CLUSTER.state(job_id) == "COMPLETED", "it ends")
        job = self.wait_ended(job_id)
        self.near(job["jobs_write_mb"][()], 1024)
        self.near(job["sonde_job_written_bytes_total"][()], 1024 * MIB)
        self.assertGreaterEqual(job["jobs_write_count"][()], 1024)

    def test_what_children_wrote_that_nobody_waited_for_counts(self):
        need("taskstats")
        job_id = self.submit_known([self.agent], "unawaited", "64", CLUSTER.place, "3")
        self.wait_said(job_id, "children are done")
        self.tick()
        self.near(self.agent.job(job_id)["jobs_write_mb"][()], 192)

    def test_a_job_between_two_ticks_is_seen_with_its_cpu_time(self):
        """Its time stands while the job burns, however long that takes: then the job is young, and looked at again. It begins at
        a full hour: the next tick is an hour away."""
        clock = self.enterContext(Clock(stands=int(time.time()) // 3600 * 3600))
        agent = self.enterContext(Agent("-t", "1h", "--job.linger=24h", env=clock.env))
        wait_until(lambda: self.ticks(agent) == "1", "the first tick")
        job_id = self.submit("burn", "2", "1")
        # A process is not in its cgroup yet when it begins.
        said = 0.98 * float(self.wait_said(job_id, r"cpu (\S+)")[1])

        def shown(name):
            clock.advance(0.05)
            return agent.job(job_id).get(name, {}).get((), 0)
        wait_until(lambda: shown("sonde_job_cpu_seconds_total") >= said, "all of it")
        self.near(shown("sonde_job_cpu_seconds_total"), said, 0.1)
        CLUSTER.run("scancel", str(job_id))
        wait_until(lambda: not shown("jobs_rss"), "the agent knows that it has ended")
        self.assertGreaterEqual(shown("jobs_cpu_time_total"), said)
        self.assertEqual(self.ticks(agent), "1")

    def test_a_job_killed_for_its_memory_shows_it(self):
        gate = self.gate()
        # The script outlives what is killed until the agent has seen that: of a directory that is gone the kernel may not tell.
        seen = self.gate()
        job_id = self.batch(f"{CLUSTER.behave} oom 98 200 <>{gate.path}; echo over; {seen.wait}")
        self.wait_said(job_id, "held")
        self.wait_family(self.agent, job_id, "sonde_job_memory_peak_bytes", lambda s: s[()] >= 98 * MIB)
        gate.open()
        self.wait_said(job_id, "over")
        self.wait_family(self.agent, job_id, "sonde_job_oom_kills_total", lambda s: s[()] == 1)
        seen.open()
        wait_until(lambda: CLUSTER.state(job_id) == "OUT_OF_MEMORY", "it is killed")
        job = self.wait_ended(job_id)
        self.assertEqual(job["sonde_job_oom_kills_total"][()], 1)
        self.near(job["sonde_job_memory_peak_bytes"][()], 100 * MIB)

    def test_ten_cpu_seconds_are_ten(self):
        said = self.wait_said(self.burn, r"cpu (\S+) user (\S+) system (\S+)")
        cpu, user, system = map(float, said.groups())
        self.assertGreaterEqual(cpu, 10)
        self.tick()
        job = self.agent.job(self.burn)
        self.near(job["jobs_cpu_time_total"][()], cpu)
        self.near(job["sonde_job_cpu_seconds_total"][()], cpu)
        self.near(job["jobs_user_time"][()] + job["jobs_system_time"][()], cpu)
        self.near(sum(job["jobs_cpu_time_core"].values()), cpu)
        self.near(job["jobs_user_time"][()], user, 0.05)


if __name__ == "__main__":
    import tap
    tap.main()
