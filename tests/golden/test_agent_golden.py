#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The real agent on what tests/vm/record has copied of machines with jobs, compared with a file for each; and on Lustre
servers that were made by hand, in the formats of job_stats that its releases have.

With SONDE_UPDATE_GOLDEN=1 the files are rewritten instead: ./check golden --update.
"""
import itertools
import pathlib
import re
import unittest

from sonde import Agent, wait_until
from test_golden import compare

HERE = pathlib.Path(__file__).resolve().parent / "agent"
STILL = {"SONDE_CLOCK": "1800000000"}  # when the agent saw the jobs
COLLECTORS = ("steps", "tasks")  # besides those that are on


def family(line):
    return re.match(r"\w+", line)[0]


def of_jobs(text):
    """The samples, without what the agent says of itself; in the order of the families, and within one in that of the
    alphabet: jobs come as the file system lists their directories."""
    lines = [line for line in text.splitlines(True) if line.startswith(("jobs_", "sonde_job_"))]
    return "".join("".join(sorted(samples)) for _, samples in itertools.groupby(lines, family))


class Recorded(unittest.TestCase):
    def play(self, directory):
        # A tick that never comes: percentages would need a second one.
        agent = self.enterContext(Agent(
            f"--path.procfs={directory}/proc", f"--path.sysfs={directory}/sys", "--node.name=n1", "-t", "3600",
            *(f"--collector.{name}" for name in COLLECTORS), env=STILL))
        # Users are resolved on the side.
        return wait_until(lambda: (answer := agent.metrics()).text.count('user="712') == 2 and answer, "two users")

    def check_recording(self, directory):
        answer = self.play(directory)
        compare(self, directory / "metrics.prom", of_jobs(answer.text))
        # What the two jobs of the recording were, whatever the file says.
        families = answer.families()
        jobs = {dict(labels)["account"]: dict(labels) for labels in families["sonde_job_info"]}
        self.assertEqual({account: job["user"] for account, job in jobs.items()},
                         {"physics": "712001", "chemistry": "712002"})
        value = lambda name, account, **labels: families[name].get(
            tuple(({"slurm_job": jobs[account]["job_id"], "instance": "n1"} | labels).items()))
        self.assertEqual(value("jobs_thread_count", "physics", proc_name="behave"), 2)
        self.assertEqual(value("jobs_thread_count", "chemistry", proc_name="behave"), 4)
        self.assertEqual(value("jobs_uses_scratch", "chemistry"), 1)
        self.assertEqual(value("jobs_gpus_used", "chemistry", gpuid="0"), 1)
        self.assertGreater(value("jobs_rss", "physics"), 40)
        self.assertEqual(bool(families["jobs_cpu_time_core"]), directory.name.endswith("-v1"))
        self.assertEqual(families["sonde_agent_leftover_cgroups"], {(): 0})

    def check_server(self, directory):
        agent = self.enterContext(Agent(
            f"--path.procfs={directory}/proc", f"--path.sysfs={directory}/sys", "--lustre.lctl=", "-t", "200ms", env=STILL))
        answer = wait_until(lambda: "lustre_job_stats_total" in (answer := agent.metrics()).text and answer, "a look")
        compare(self, directory / "metrics.prom",
                "".join(line for line in answer.text.splitlines(True) if line.startswith("lustre_")))
        # What is the same of all, whatever the file says.
        value = lambda name, **labels: answer.families()[name].get(tuple(labels.items()))
        ost = {"component": "ost", "target": "scratch-OST0000", "jobid": "4711"}
        self.assertEqual(value("lustre_job_read_bytes_total", **ost), 4198400)
        self.assertEqual(value("lustre_job_write_samples_total", **ost), 2)
        self.assertEqual(value("lustre_job_stats_total", **ost, operation="punch"), 1)
        self.assertEqual(value("lustre_job_stats_total", **ost, operation="statfs"), 0)
        self.assertEqual(value("lustre_job_read_small_samples_total", **ost), 6 if directory.name == "lustre-2.16" else None)
        self.assertEqual(value("sonde_agent_lustre_up"), 1)
        self.assertEqual(value("sonde_agent_lustre_lines_left_out"), 0)

    def test_every_layout_is_recorded(self):
        self.assertEqual([path.name for path in sorted(HERE.iterdir())],
                         ["lustre-2.12", "lustre-2.15", "lustre-2.16",
                          "slurm-22.05-v1", "slurm-22.05-v2", "slurm-24.11-v2", "slurm-26.05-v2"])


for recording in sorted(HERE.glob("slurm-*")):
    setattr(Recorded, f"test_{recording.name.replace('-', '_')}",
            lambda self, directory=recording: self.check_recording(directory))
for server in sorted(HERE.glob("lustre-*")):
    setattr(Recorded, f"test_{server.name.replace('-', '_').replace('.', '_')}",
            lambda self, directory=server: self.check_server(directory))


if __name__ == "__main__":
    import tap
    tap.main()
