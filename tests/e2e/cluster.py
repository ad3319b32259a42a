# SPDX-License-Identifier: GPL-2.0-or-later
"""A Slurm with nothing in it, whose jobs behave as they are told to, and what tests of the agent share."""
import re
import unittest
import uuid

from slurm import Slurm
from sonde import BUILD, DEADLINE, wait_until


class Cluster(Slurm):
    """With nothing in it; with cgroup v1, or without cgroups."""

    def __init__(self, suite="bookworm", cgroup="v1", **options):
        super().__init__(suite, seeded=False, cgroup=cgroup if cgroup == "none" else "", **options)
        if self.env["SANDBOX_CGROUP"] != cgroup:
            self.end()
            raise unittest.SkipTest(f"Slurm has no cgroup {cgroup} here: {self.env['SANDBOX_CGROUP']}")
        try:
            self._furnish()
        except BaseException:
            self.end()
            raise

    def _furnish(self):
        for words in (["add", "account", "physics"], ["add", "user", "alice", "account=physics"]):
            self.run("sacctmgr", "-iQ", *words, check=False)
        wait_until(lambda: self.run("sbatch", "--test-only", "-p", "cpu", "--wrap=true", user="alice",
                                    check=False).returncode == 0, "Slurm knows the user")
        self.place = self.inside("behave")
        self.behave = f"{self.place}/behave"
        self.run("sh", "-c", 'mkdir -p "$1" && chmod 1777 "$1" && cat >"$1/new" && chmod 755 "$1/new" && mv "$1/new" "$2"',
                 "sh", self.place, self.behave, input=(BUILD / "tests/agent/behave").read_bytes().decode("latin-1"),
                 encoding="latin-1")

    def submit(self, *behaviour, flags=(), user="alice"):
        """A job of that behaviour; its output goes to a file named after it."""
        words = " ".join(f"'{word}'" for word in behaviour)
        return self.batch(f"exec {self.behave} {words}", *flags, user=user)

    def batch(self, script, *flags, user="alice"):
        done = self.run("sbatch", "--parsable", "-p", "cpu", "-D", self.place, "-o", f"{self.place}/%j.out", "--mem=100M",
                        *flags, f"--wrap={script}", user=user)
        return int(done.stdout)

    def gate(self):
        """The path of a fifo: a job that reads from it waits, and uses no CPU time, until the test opens the gate."""
        path = f"{self.place}/{uuid.uuid4().hex}"
        self.run("mkfifo", "-m", "666", path)
        return path

    def open_gate(self, path):
        self.run("timeout", str(DEADLINE), "sh", "-c", 'echo >"$1"', "sh", path)

    def said(self, job_id):
        done = self.run("cat", f"{self.place}/{job_id}.out", check=False)
        return done.stdout if done.returncode == 0 else ""

    def state(self, job_id):
        return self.run("squeue", "-h", "-t", "all", "-j", str(job_id), "-o", "%T").stdout.strip()


class JobTest(unittest.TestCase):
    """Cases whose jobs end with them."""

    cluster = None

    def submit(self, *arguments, **options):
        return self.end_later(self.cluster.submit(*arguments, **options))

    def batch(self, *arguments, **options):
        return self.end_later(self.cluster.batch(*arguments, **options))

    def end_later(self, job_id):
        self.addCleanup(self.cluster.run, "scancel", str(job_id), check=False)
        return job_id

    def submit_known(self, agents, *behaviour):
        """One that begins when its process is known to all of the agents, however busy the machine is."""
        gate = self.cluster.gate()
        words = " ".join(f"'{word}'" for word in behaviour)
        job_id = self.batch(f"read -r _ <{gate}; exec {self.cluster.behave} {words}")
        for agent in agents:
            self.wait_family(agent, job_id, "jobs_thread_count", lambda s: (("proc_name", "slurm_script"),) in s)
        self.cluster.open_gate(gate)
        return job_id

    def wait_said(self, job_id, words, deadline=DEADLINE):
        return wait_until(lambda: re.search(words, self.cluster.said(job_id)), f"job {job_id} says {words}", deadline)

    def wait_family(self, agent, job_id, family, good=lambda samples: True, deadline=DEADLINE):
        """All that is told of the job, as soon as that family is there and good."""
        def look():
            job = agent.job(job_id)
            return job if family in job and good(job[family]) else None
        return wait_until(look, f"{family} of job {job_id}", deadline)
