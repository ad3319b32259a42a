#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The Epilog that removes what a job has left of its cgroups, on real ones."""
import os
import pathlib
import subprocess
import unittest

from sonde import DEADLINE, ROOT
from capabilities import need

SCRIPT = ROOT / "packaging/slurm/epilog-leftover-cgroups.sh"
CGROUPS = pathlib.Path("/sys/fs/cgroup")
UID, JOB, OTHER = 64998, 987654321, 987654322
NODE = f"sonde-epilog-{os.getpid()}"  # scripts/guard removes what a killed one has left


def remove(directory):
    for path, _, _ in os.walk(directory, topdown=False):
        os.rmdir(path)


class OnCgroups:
    """The tests; a class for each kind of hierarchy is below."""

    env = {"SLURM_JOB_ID": str(JOB), "SLURM_JOB_UID": str(UID), "SLURMD_NODENAME": NODE}

    def epilog(self, **changes):
        env = {name: value for name, value in {**self.env, **changes}.items() if value is not None}
        done = subprocess.run([SCRIPT], env=env, capture_output=True, text=True, timeout=DEADLINE)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))

    def setUp(self):
        need("root")
        need(self.version)
        self.jobs = self.base.joinpath(*self.top)
        first = self.base / self.top[0]
        if not first.exists():
            self.addCleanup(remove, first)
        self.jobs.mkdir(parents=True, exist_ok=True)
        self.job = self.make(self.names[0])
        self.other = self.make(self.names[1])

    def make(self, name):
        job = self.jobs / name
        for below in ("step_extern", "step_0/task_0", "step_0/a * 'strange' $(name)", "step_batch/task_0/-rf"):
            (job / below).mkdir(parents=True)
        self.addCleanup(lambda: job.exists() and remove(job))
        return job

    def put(self, directory):
        process = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
        self.addCleanup(process.wait)
        self.addCleanup(process.stdin.close)
        (directory / "cgroup.procs").write_text(str(process.pid))
        return process

    def test_what_a_job_left_is_removed_and_nothing_else(self):
        self.epilog()
        self.assertFalse(self.job.exists())
        self.assertTrue((self.other / "step_0/task_0").exists())
        self.assertTrue(self.jobs.exists())

    def test_a_job_with_a_process_is_left_whole(self):
        process = self.put(self.job / "step_batch/task_0/-rf")
        self.epilog()
        self.assertTrue((self.job / "step_0/a * 'strange' $(name)").exists())
        process.stdin.close()
        process.wait()
        self.epilog()
        self.assertFalse(self.job.exists())

    def test_another_user_node_or_nonsense_changes_nothing(self):
        for changes in ({"SLURM_JOB_ID": None}, {"SLURM_JOB_ID": ""}, {"SLURM_JOB_ID": "*"},
                        {"SLURM_JOB_ID": f"{JOB}/../job_{OTHER}"}, {"SLURM_JOB_ID": "$(reboot)"},
                        *self.others):
            self.epilog(**changes)
            self.assertTrue((self.job / "step_0/task_0").exists(), changes)


class OldHierarchy(OnCgroups, unittest.TestCase):
    version = "cgroup-v1"
    base = CGROUPS / "memory"
    top = (f"slurm_{NODE}", f"uid_{UID}")
    names = (f"job_{JOB}", f"job_{OTHER}")
    others = ({"SLURMD_NODENAME": "another"}, {"SLURMD_NODENAME": None}, {"SLURMD_NODENAME": "*"},
              {"SLURM_JOB_UID": "64997"}, {"SLURM_JOB_UID": "*"}, {"SLURM_JOB_UID": None})

    def test_every_hierarchy_is_cleaned(self):
        second = CGROUPS / "freezer" / self.top[0]
        self.addCleanup(remove, second)
        job = second / self.top[1] / self.names[0] / "step_0"
        job.mkdir(parents=True)
        self.epilog()
        self.assertFalse(job.parent.exists())
        self.assertFalse(self.job.exists())


class UnifiedHierarchy(OnCgroups, unittest.TestCase):
    version = "cgroup-v2"
    base = CGROUPS if (CGROUPS / "cgroup.controllers").exists() else CGROUPS / "unified"
    top = ("system.slice", f"{NODE}_slurmstepd.scope")
    names = (f"job_{JOB}", f"job_{OTHER}")
    others = ({"SLURMD_NODENAME": "another"}, {"SLURMD_NODENAME": None}, {"SLURMD_NODENAME": "../x"})


class UnifiedHierarchyBySluid(OnCgroups, unittest.TestCase):
    """As Slurm 26.05 names them."""

    version = UnifiedHierarchy.version
    base = UnifiedHierarchy.base
    top = UnifiedHierarchy.top
    names = ("sF0NM7G8FHMD00", "sF0NM7G8FHMD01")
    env = {**OnCgroups.env, "SLURM_JOB_SLUID": names[0]}
    others = ({"SLURMD_NODENAME": "another"}, {"SLURM_JOB_SLUID": "*"}, {"SLURM_JOB_SLUID": "../sF0NM7G8FHMD00"},
              {"SLURM_JOB_SLUID": None})


if __name__ == "__main__":
    import tap
    tap.main()
