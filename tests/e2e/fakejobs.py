# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs without Slurm: real cgroups of v1 in Slurm's layout, real processes, and a stand-in for slurmstepd, in a part of the
hierarchies that the agent is shut in, so that it sees no other job of this machine."""
import itertools
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import unittest

from clock import Clock
from sonde import BUILD, DEADLINE, Agent, mount_namespace, wait_until
from capabilities import need

NAME = "faults"
SLURMD_UID = 2140000000 + os.getpid()  # nobody's: no other slurmstepd of this machine is taken for one of these
BEHAVE = BUILD / "tests/agent/behave"
TASK_HIERARCHIES = ("memory", "cpuacct")
STEP_HIERARCHIES = ("cpuset", "freezer", "devices")

# In a cgroup namespace a part of a hierarchy is the whole of it, also in /proc/PID/cgroup.
SHUT_IN = """
for directory in {directories}; do echo $$ >"$directory/cgroup.procs" || exit; done
exec {unshare} --cgroup sh -c '
for directory in {directories}; do mount --bind "$directory" "$(dirname "$directory")" || exit; done
{more}
exec "$@"' sh "$@"
"""


def mounted_hierarchies():
    found = {}
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        words = line.split()
        if words[words.index("-") + 1] == "cgroup":
            found[pathlib.Path(words[4]).name] = pathlib.Path(words[4])
    return found


def remove_tree(top):
    """Kills what is in it, and removes it, the innermost first."""
    def is_gone():
        for path, _, _ in os.walk(top, topdown=False):
            try:
                for pid in pathlib.Path(path, "cgroup.procs").read_text().split():
                    os.kill(int(pid), signal.SIGKILL)
                os.rmdir(path)
            except (ProcessLookupError, FileNotFoundError):
                pass
            except OSError:
                return False
        return not top.exists()
    wait_until(is_gone, f"{top} goes")


class Node:
    """Where the jobs are. A cgroup that Slurm would make is a directory in each of several hierarchies."""

    numbers = itertools.count(1)

    def __init__(self):
        need("root")
        need("cgroup-v1")
        mounts = mounted_hierarchies()
        name = f"sonde-faults-{os.getpid()}-{next(self.numbers)}"
        self.tops = {hierarchy: mount / name for hierarchy, mount in mounts.items()}
        for hierarchy, top in self.tops.items():
            self.make_directory(hierarchy, top)
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="sonde-faults-"))
        self.work.chmod(0o1777)
        shutil.copy(BUILD / "tests/agent/stepd", self.work / "slurmstepd")
        shutil.copy(BEHAVE, self.work / "behave")
        self.jobs = []

    @staticmethod
    def make_directory(hierarchy, path):
        """A cpuset takes no process until it has cores and memory: those of the one above it."""
        if path.exists():
            return
        if not path.parent.exists():
            Node.make_directory(hierarchy, path.parent)
        path.mkdir()
        for file in ("cpuset.cpus", "cpuset.mems") if hierarchy == "cpuset" else ():
            (path / file).write_text((path.parent / file).read_text())

    def starter(self, more="", *words):
        """What an agent is to be started by. `more` runs as root inside, before it."""
        directories = " ".join(map(str, self.tops.values()))
        return ["sh", "-c", SHUT_IN.format(directories=directories, unshare=" ".join(mount_namespace()), more=more), "sh", *words]

    def agent(self, *flags, more="", words=(), **arguments):
        return Agent(f"--slurmd.user={SLURMD_UID}", "--node.name=host", *flags,
                     starter=self.starter(more, *words), **arguments)

    def job(self, number, uid=64997, **arguments):
        job = Job(self, number, uid, **arguments)
        self.jobs.append(job)
        return job

    def end(self):
        for job in self.jobs:
            job.end()
        for top in self.tops.values():
            remove_tree(top)
        shutil.rmtree(self.work)


class Job:
    def __init__(self, node, number, uid, name=NAME):
        self.node, self.number, self.uid = node, number, uid
        self.path = f"slurm_{name}/uid_{uid}/job_{number}"
        self.steps = {}
        self.make(self.path)

    def make(self, path):
        for hierarchy in TASK_HIERARCHIES + STEP_HIERARCHIES:
            deepest = path if hierarchy in TASK_HIERARCHIES else path.partition("/task_")[0]
            self.node.make_directory(hierarchy, self.node.tops[hierarchy] / deepest)

    def directories(self):
        return [self.node.tops[hierarchy] / self.path for hierarchy in TASK_HIERARCHIES + STEP_HIERARCHIES]

    def step(self, name="batch", has_stepd=True):
        self.steps[name] = step = Step(self, name, has_stepd)
        return step

    def start(self, *words, **arguments):
        """A process in its only step."""
        step = self.steps.get("batch") or self.step()
        return step.start(*words, **arguments)

    def remove_directories(self):
        for directory in self.directories():
            remove_tree(directory)

    def end(self, with_directories=True):
        for step in self.steps.values():
            step.end_stepd()
        if with_directories:
            self.remove_directories()


class Step:
    outputs = itertools.count(1)

    def __init__(self, job, name, has_stepd):
        self.job, self.name, self.stepd = job, name, None
        job.make(f"{job.path}/step_{name}/task_0")
        if has_stepd:
            self.start_stepd()

    def start_stepd(self):
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.stepd = subprocess.Popen([f"slurmstepd: [{self.job.number}.{self.name}]", str(SLURMD_UID)],
                                      executable=self.job.node.work / "slurmstepd", stdin=theirs)
        theirs.close()

    def procs(self, task):
        tops, path = self.job.node.tops, f"{self.job.path}/step_{self.name}"
        return [str(tops[hierarchy] / path / f"task_{task}" / "cgroup.procs") for hierarchy in TASK_HIERARCHIES] + \
            [str(tops[hierarchy] / path / "cgroup.procs") for hierarchy in STEP_HIERARCHIES]

    def start(self, *words, task=0, uid=None):
        """A process of a task, a child of the slurmstepd; behave, unless the first word is a path."""
        self.job.make(f"{self.job.path}/step_{self.name}/task_{task}")
        if "/" not in str(words[0]):
            words = (self.job.node.work / "behave", *words)
        procs = self.procs(task)
        process = Process(self, self.job.node.work / f"{self.job.number}.{self.name}.{next(self.outputs)}")
        message = [str(self.job.uid if uid is None else uid), str(process.output), str(len(procs)), *procs, *words]
        self.socket.send(b"".join(os.fsencode(word) + b"\0" for word in message))
        self.socket.settimeout(DEADLINE)
        process.pid = struct.unpack("i", self.socket.recv(4))[0]
        return process

    def end_stepd(self):
        """As it would end by itself, its processes left alone, or killed with it where they are its children."""
        if self.stepd:
            self.socket.close()
            self.stepd.wait(DEADLINE)
            self.stepd = None


class Process:
    def __init__(self, step, output):
        self.step, self.output, self.pid = step, output, None

    def said(self):
        return self.output.read_text() if self.output.exists() else ""

    def wait_said(self, words):
        return wait_until(lambda: words in self.said() and self.said(), f"{self.pid} says {words}")

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)

    def is_there(self):
        return os.path.exists(f"/proc/{self.pid}")


class FaultTest(unittest.TestCase):
    """The agents share a clock that the test moves: their ticks come when it says so, and by themselves as well."""

    def setUp(self):
        self.node = Node()
        self.addCleanup(self.node.end)
        self.clock = self.enterContext(Clock())

    def fifo(self, name):
        """One that processes of jobs may wait at: a line, written by the test, lets them go on."""
        path = self.node.work / name
        os.mkfifo(path)
        path.chmod(0o666)
        return path

    def agent(self, *flags, tick=1, **arguments):
        """One that ticks every so many seconds, and has done so once: jobs that begin from now on are young."""
        agent = self.enterContext(self.node.agent("-t", f"{tick * 1000:.0f}ms", *flags, env=self.clock.env, **arguments))
        agent.tick = tick
        wait_until(lambda: agent.get("/-/ready").status == 200, "a first tick")
        return agent

    @staticmethod
    def ticks(agent):
        return agent.metrics().value('sonde_agent_samples_total{cause="tick"}')

    def wait_job(self, agent, number, family="sonde_job_info", good=lambda samples: True):
        """All that is told of the job, as soon as that family is there and good."""
        def look():
            job = agent.job(number)
            return job if family in job and good(job[family]) else None
        return wait_until(look, f"{family} of job {number}")

    def wait_ticks(self, agent, n):
        """So many whole samples that began after now."""
        for _ in range(n + 1):
            before = self.ticks(agent)
            self.clock.advance(agent.tick)
            wait_until(lambda: self.ticks(agent) > before, "a tick")

    def wait_passing(self, condition, what, seconds=1):
        """As wait_until, while time passes for the agents, so many seconds at once."""
        def look():
            self.clock.advance(seconds)
            return condition()
        return wait_until(look, what)

    def wait_gone(self, agent, number):
        self.wait_passing(lambda: not agent.job(number), f"job {number} is no longer told of")
