# SPDX-License-Identifier: GPL-2.0-or-later
"""A Slurm with nothing in it, whose jobs behave as they are told to, and what tests of the agent share."""
import contextlib
import glob
import pathlib
import re
import unittest
import uuid

from slurm import Slurm
from sonde import BUILD, DEADLINE, wait_until


CGROUPS = pathlib.Path("/sys/fs/cgroup")


def cgroup_files(pattern):
    """Other programs remove their directories meanwhile: unlike Path.glob, glob.glob passes over them."""
    return [pathlib.Path(path) for path in glob.glob(f"{CGROUPS}/{pattern}", recursive=True)]


def pids_in(pattern):
    """The processes that these files list; a file of a directory that goes meanwhile lists none."""
    found = []
    for file in cgroup_files(pattern):
        with contextlib.suppress(OSError):  # ENOENT, or ENODEV of one that was opened before
            found += map(int, file.read_text().split())
    return found


def processes_of(job_id):
    """pid → name, by the kernel; without the slurmstepds, which may be there too."""
    found = {}
    for pid in pids_in(f"memory/slurm*/uid_*/job_{job_id}/**/cgroup.procs"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            found[pid] = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return {pid: name for pid, name in found.items() if name != "slurmstepd"}


class Cluster(Slurm):
    """With nothing in it; with cgroup v1, or without cgroups. Its tests look at the processes of jobs and at files of Slurm's."""

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

    def said(self, job_id):
        done = self.run("cat", f"{self.place}/{job_id}.out", check=False)
        return done.stdout if done.returncode == 0 else ""

    def state(self, job_id):
        return self.run("squeue", "-h", "-t", "all", "-j", str(job_id), "-o", "%T").stdout.strip()


class Gate:
    """Where a job waits until the test opens it, once: `wait` is for its script, and takes neither a process nor CPU time."""

    def __init__(self, cluster):
        self.cluster, self.path = cluster, f"{cluster.place}/gate-{uuid.uuid4().hex}"
        cluster.run("mkfifo", "-m", "666", self.path)
        self.wait = f"read line <{self.path}; "

    def open(self):
        """As soon as the job waits there."""
        self.cluster.run("timeout", str(DEADLINE), "sh", "-c", f"echo go >{self.path}")


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

    def gate(self):
        return Gate(self.cluster)

    def batch_known(self, agents, script, *flags):
        """One that begins when its process is known to all of the agents, however busy the machine is."""
        gate = self.gate()
        job_id = self.batch(gate.wait + script, *flags)
        for agent in agents:
            self.wait_family(agent, job_id, "jobs_thread_count", lambda s: (("proc_name", "slurm_script"),) in s)
        gate.open()
        return job_id

    def submit_known(self, agents, *behaviour):
        words = " ".join(f"'{word}'" for word in behaviour)
        return self.batch_known(agents, f"exec {self.cluster.behave} {words}")

    def wait_said(self, job_id, words):
        return wait_until(lambda: re.search(words, self.cluster.said(job_id)), f"job {job_id} says {words}")

    def wait_family(self, agent, job_id, family, good=lambda samples: True):
        """All that is told of the job, as soon as that family is there and good."""
        def look():
            job = agent.job(job_id)
            return job if family in job and good(job[family]) else None
        return wait_until(look, f"{family} of job {job_id}")

    @staticmethod
    def rows(agent, job_id, family):
        """node → {other labels: value} of one family of a job."""
        found = {}
        for labels, value in agent.metrics().families(f'="{job_id}"').get(family, {}).items():
            pairs = dict(labels)
            if pairs.pop("job_id", pairs.pop("slurm_job", None)) == str(job_id):
                node = pairs.pop("node", pairs.pop("instance", None))
                found.setdefault(node, {})[tuple(sorted(pairs.items()))] = value
        return found

    @staticmethod
    def ticks(agent):
        return agent.metrics().samples().get('sonde_agent_samples_total{cause="tick"}', "0")

    def wait_ticks(self, agent, n, clock=None, seconds=3600):
        """So many whole samples that began after now; with a clock, they come at once."""
        for _ in range(n + 1):
            before = self.ticks(agent)
            if clock:
                clock.advance(seconds)
            wait_until(lambda: self.ticks(agent) != before, "a tick")
