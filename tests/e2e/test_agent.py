#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent on a real Slurm with cgroup v1: jobs whose behaviour is known show just that, also when they end between two
samples. tests/vm does the same under cgroup v2."""
from cluster import Cluster, JobTest
from sonde import Agent, wait_until

MIB = 1 << 20
TOLERANCE = 0.02


def setUpModule():
    global CLUSTER
    CLUSTER = Cluster()


def tearDownModule():
    CLUSTER.run("scancel", "-u", "alice", check=False)
    CLUSTER.end()


class Behaviour(JobTest):
    """One agent for all, with the default tick."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = CLUSTER
        cls.agent = Agent("-t", "15")
        cls.burn = CLUSTER.submit("burn", "90", "1")  # takes a minute and a half, during the other tests

    @classmethod
    def tearDownClass(cls):
        cls.agent.stop()

    def near(self, value, expected, tolerance=TOLERANCE):
        self.assertLessEqual(abs(value - expected), tolerance * expected, f"{value} is not {expected}")

    def test_memory_files_and_threads_are_those_of_the_job(self):
        hold = self.submit("hold", "300", flags=["--mem=400M"])
        files = self.submit("files", "500", CLUSTER.place)
        threads = self.submit("threads", "40")
        for job_id in (hold, files, threads):
            self.wait_said(job_id, r"\d+ (MiB|files|threads)")
        job = self.wait_family(self.agent, hold, "sonde_job_memory_anonymous_bytes", lambda s: s[()] >= 295 * MIB, 40)
        self.near(job["jobs_rss"][()], 300, 0.03)  # and the extern step's sleep
        self.near(job["sonde_job_memory_anonymous_bytes"][()], 300 * MIB)
        self.assertEqual(job["sonde_job_memory_limit_bytes"][()], 400 * MIB)
        self.assertGreaterEqual(job["sonde_job_memory_peak_bytes"][()], 300 * MIB)
        job = self.wait_family(self.agent, files, "jobs_opened_files", lambda s: s[()] >= 500, 40)
        self.near(job["jobs_opened_files"][()], 501)  # its output is one
        job = self.wait_family(self.agent, threads, "jobs_thread_count", lambda s: s.get((("proc_name", "behave"),)) == 40, 40)
        self.near(job["jobs_thread_count"][("proc_name", "behave"),], 40)
        self.assertEqual(job["jobs_spawned_processes"][()], 2)  # the extern step has one too
        # Her name is known in the sandbox alone.
        self.assertEqual(job["sonde_job_info"], {(("account", "physics"), ("user", "2001")): 1.0})

    def test_a_gigabyte_written_in_two_seconds_is_seen_although_the_job_has_ended(self):
        job_id = self.submit("write", "1024", f"{CLUSTER.place}/gigabyte")
        self.wait_said(job_id, "wrote")
        wait_until(lambda: CLUSTER.state(job_id) == "COMPLETED", "it ends", 30)
        self.wait_family(self.agent, job_id, "jobs_write_mb", lambda s: s[()] > 1000)
        wait_until(lambda: "jobs_rss" not in self.agent.job(job_id), "the agent knows that it has ended")
        job = self.agent.job(job_id)
        self.near(job["jobs_write_mb"][()], 1024)
        self.near(job["sonde_job_written_bytes_total"][()], 1024 * MIB)
        self.assertGreaterEqual(job["jobs_write_count"][()], 1024)

    def test_what_children_wrote_that_nobody_waited_for_counts(self):
        job_id = self.submit_known([self.agent], "unawaited", "64", CLUSTER.place, "3")
        self.wait_said(job_id, "children are done")
        job = self.wait_family(self.agent, job_id, "jobs_write_mb", lambda s: s[()] > 190, 40)
        self.near(job["jobs_write_mb"][()], 192)

    def test_a_job_of_three_seconds_between_two_ticks_is_seen_with_its_cpu_time(self):
        job_id = self.submit("burn", "2", "1")
        said = self.wait_said(job_id, r"cpu (\S+)")
        CLUSTER.run("scancel", str(job_id))
        job = self.wait_family(self.agent, job_id, "sonde_job_cpu_seconds_total", lambda s: s[()] > 1.9)
        self.near(job["sonde_job_cpu_seconds_total"][()], float(said[1]), 0.1)
        wait_until(lambda: "jobs_rss" not in self.agent.job(job_id), "it has ended")
        self.assertGreater(self.agent.job(job_id)["jobs_cpu_time_total"][()], 1.9)

    def test_a_job_killed_for_its_memory_shows_it(self):
        job_id = self.submit("oom", "98", "200")
        wait_until(lambda: CLUSTER.state(job_id) == "OUT_OF_MEMORY", "it is killed", 30)
        job = self.wait_family(self.agent, job_id, "sonde_job_oom_kills_total", lambda s: s[()] > 0)
        self.assertEqual(job["sonde_job_oom_kills_total"][()], 1)
        self.near(job["sonde_job_memory_peak_bytes"][()], 100 * MIB)

    def test_ninety_cpu_seconds_are_ninety(self):
        job_id = self.burn
        said = self.wait_said(job_id, r"cpu (\S+) user (\S+) system (\S+)", 600)
        cpu, user, system = map(float, said.groups())
        self.assertGreaterEqual(cpu, 90)
        job = self.wait_family(self.agent, job_id, "jobs_cpu_time_total", lambda s: s[()] >= 0.999 * cpu, 40)
        self.near(job["jobs_cpu_time_total"][()], cpu)
        self.near(job["sonde_job_cpu_seconds_total"][()], cpu)
        self.near(job["jobs_user_time"][()] + job["jobs_system_time"][()], cpu)
        self.near(sum(job["jobs_cpu_time_core"].values()), cpu)
        self.near(job["jobs_user_time"][()], user, 0.05)


if __name__ == "__main__":
    import tap
    tap.main()
