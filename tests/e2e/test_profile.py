#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The profile plugin in real slurmstepds, of every Slurm that it is built for: what it pushes and what it tells the agent is
what the job did, and is gone when the job is."""
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import tempfile
import time
import unittest

from clock import Clock
from cluster import Cluster, JobTest
from prometheus import Prometheus
from pushgateway import Pushgateway
from slurm import SUITES
from sonde import BUILD, SONDE, Agent, http_get, wait_until

MIB = 1 << 20
LOOPBACK = pathlib.Path("/sys/class/net/lo/statistics/rx_bytes")
RELEASES = {"bookworm": "22.05", "trixie": "24.11"}
CONF = """AcctGatherProfileType=acct_gather_profile/prometheus
PluginDir=/usr/lib/x86_64-linux-gnu/slurm-wlm:@STATE@/etc
JobAcctGatherFrequency=task=1,network=1
AcctGatherInterconnectType=acct_gather_interconnect/sysfs
"""


def plugin_of(suite):
    """As it was built for the Slurm of that Debian release."""
    found = sorted(BUILD.glob(f"src/plugin/slurm-{RELEASES[suite]}.*/acct_gather_profile_prometheus.so"))
    if not found:
        raise unittest.SkipTest(f"the plugin was not built for Slurm {RELEASES[suite]} (-Dslurm_source)")
    return found[-1]


class ProfileCluster(Cluster):
    """One whose Slurm has the plugin, with these lines in acct_gather.conf."""

    def __init__(self, suite, lines):
        with tempfile.TemporaryDirectory() as directory:
            pathlib.Path(directory, "acct_gather.conf").write_text(f"SysfsInterfaces=lo\n{lines}")
            shutil.copy(plugin_of(suite), directory)
            super().__init__(suite, conf=CONF, etc=directory)


class Profiled(JobTest):
    suite = None

    def steps(self, job_id):
        """step → {name: {labels: value}} of one job, as the Pushgateway or the agent has it."""
        raise NotImplementedError

    def wait_steps(self, job_id, good, what):
        def look():
            steps = self.steps(job_id)
            return steps if steps and good(steps) else None
        return wait_until(look, what)

    def wait_gone(self, job_id):
        wait_until(lambda: not self.steps(job_id), f"nothing is left of job {job_id}")

    def profiled(self, script, *flags):
        return self.batch(script, "--profile=task,network", *flags)

    @staticmethod
    def of(step, name, **labels):
        """The only value of that metric with these labels."""
        found = [value for pairs, value in step.get(name, {}).items() if labels.items() <= dict(pairs).items()]
        return found[0] if len(found) == 1 else None


class Behaviour:
    """Of both ways to tell."""

    def test_what_a_job_does_is_told(self):
        behave, place = self.cluster.behave, self.cluster.place
        burn = self.profiled(f"exec {behave} burn 3 1")
        hold = self.profiled(f"exec {behave} hold 60", "--mem=200M")
        write = self.profiled(f"{behave} write 64 {place}/64; exec sleep infinity")
        said = self.wait_said(burn, r"cpu (\S+)")
        steps = self.wait_steps(burn, lambda s: self.of(s.get("batch", {}), "slurm_profile_task_cpu_seconds_total", task="0")
                                and self.of(s["batch"], "slurm_profile_task_cpu_seconds_total", task="0") > 2.9, "CPU time")
        self.assertAlmostEqual(self.of(steps["batch"], "slurm_profile_task_cpu_seconds_total", task="0"), float(said[1]),
                               delta=0.5)
        steps = self.wait_steps(hold, lambda s: (self.of(s.get("batch", {}), "slurm_profile_task_resident_memory_bytes",
                                                         task="0") or 0) >= 60 * MIB, "memory")
        self.assertAlmostEqual(self.of(steps["batch"], "slurm_profile_task_resident_memory_bytes", task="0") / MIB, 61,
                               delta=3)
        steps = self.wait_steps(write, lambda s: (self.of(s.get("batch", {}), "slurm_profile_task_written_bytes_total",
                                                          task="0") or 0) >= 64 * MIB, "what was written")
        batch = steps["batch"]
        self.assertAlmostEqual(self.of(batch, "slurm_profile_task_written_bytes_total", task="0") / MIB, 64, delta=1)
        self.assertIsNotNone(self.of(batch, "RSS", task="0"))
        self.assertGreater(self.of(batch, "slurm_profile_node_network_receive_bytes_total"), 0)
        self.assertNotIn("slurm_profile_task_gpu_memory_bytes", batch)
        for job_id in (burn, hold, write):
            self.cluster.run("scancel", str(job_id))
            self.wait_gone(job_id)

    def test_prometheus_scrapes_it(self):
        prometheus = Prometheus(self.cluster.env["SANDBOX_ROOT"], "scrape_configs:\n- job_name: profiles\n  honor_labels: true\n"
                                f"  scrape_interval: 1s\n  static_configs: [{{targets: ['{self.address()}']}}]\n")
        self.addCleanup(prometheus.end)
        job_id = self.profiled(f"exec {self.cluster.behave} hold 30", "-w", "c2")
        query = f'slurm_profile_task_resident_memory_bytes{{slurm_job="{job_id}",step="batch",task="0"}}'
        (labels, value), = wait_until(lambda: (rows := prometheus.query(query)) and rows[0][1] > 30 * MIB and rows, query)
        self.assertEqual(labels["instance"], "c2")
        self.assertAlmostEqual(value / MIB, 31, delta=3)
        query = f'CPUTime{{job="{job_id}",step="batch"}}'
        (labels, _), = wait_until(lambda: prometheus.query(query), query)
        self.assertEqual((labels["instance"], labels["task"]), ("c2", "0"))

    def test_the_network_is_counted_as_the_kernel_counts_it(self):
        job_id = self.profiled("exec sleep infinity", "-w", "c4")
        name = "slurm_profile_node_network_receive_bytes_total"
        first = int(LOOPBACK.read_text())
        before = self.of(self.wait_steps(job_id, lambda s: self.of(s.get("batch", {}), name), "the network")["batch"], name)
        own = LOOPBACK.read_text()
        with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
            other, _ = server.accept()
            with other:
                for _ in range(200):
                    client.sendall(bytes(MIB))
                    received = 0
                    while received < MIB:
                        received += len(other.recv(MIB))
        grown = int(LOOPBACK.read_text()) - int(own)
        steps = self.wait_steps(job_id, lambda s: self.of(s["batch"], name) - before > 0.9 * grown, "what was sent")
        # Others use it too: it has counted no more than there was in all that time.
        self.assertLess(self.of(steps["batch"], name) - before, 1.05 * (int(LOOPBACK.read_text()) - first))

    def test_four_steps_with_four_tasks_each_are_all_there(self):
        job_id = self.profiled(f"for i in 1 2 3 4; do srun --overlap --mem=20M -n4 {self.cluster.behave} hold 2 & done; wait",
                               "-n4", "--mem=300M")
        steps = self.wait_steps(job_id, lambda s: all(
            len(s.get(str(i), {}).get("slurm_profile_task_resident_memory_bytes", {})) == 4 for i in range(4)),
            "four steps with four tasks")
        for step in map(str, range(4)):
            tasks = {dict(labels)["task"] for labels in steps[step]["slurm_profile_task_cpu_seconds_total"]}
            self.assertEqual(tasks, {"0", "1", "2", "3"})
        self.cluster.run("scancel", str(job_id))
        self.wait_gone(job_id)

    def test_a_job_that_is_not_to_be_profiled_is_not(self):
        job_id = self.batch(f"exec {self.cluster.behave} hold 5", "--profile=none")
        other = self.profiled(f"exec {self.cluster.behave} hold 5")
        self.wait_steps(other, lambda s: "batch" in s, "the other")
        self.assertLessEqual(set(self.steps(job_id)), {"extern"})  # which Slurm does not tell what the job asked for

    def test_it_is_gone_after_every_kind_of_end(self):
        gates = [self.gate() for _ in range(3)]
        ends = {"COMPLETED": self.profiled(gates[0].wait), "FAILED": self.profiled(f"{gates[1].wait} exit 3"),
                "OUT_OF_MEMORY": self.profiled(f"{gates[2].wait} exec {self.cluster.behave} oom 98 200"),
                "CANCELLED": self.profiled("exec sleep infinity"), "TIMEOUT": self.profiled("exec sleep infinity")}
        for job_id in ends.values():
            self.wait_steps(job_id, lambda s: "batch" in s, "it is there")
        for gate in gates:
            gate.open()
        self.cluster.run("scancel", str(ends["CANCELLED"]))
        # Refused when slurmctld reads it in the next second.
        wait_until(lambda: self.cluster.run("scontrol", "update", f"job={ends['TIMEOUT']}", "EndTime=now", check=False).returncode == 0,
                   "its time is over")
        for state, job_id in ends.items():
            wait_until(lambda: self.cluster.state(job_id).startswith(state), state)
            self.wait_gone(job_id)


class Pushing(Profiled):
    @classmethod
    def setUpClass(cls):
        cls.gateway = Pushgateway(SUITES[0])
        cls.addClassCleanup(cls.gateway.end)
        cls.cluster = ProfileCluster(cls.suite, f"ProfilePrometheusHost={cls.gateway.url}\nProfilePrometheusFrequency=1\n"
                                     "ProfilePrometheusTimeout=60\n")
        cls.addClassCleanup(cls.cluster.end)

    def address(self):
        return self.gateway.address

    @classmethod
    def steps(cls, job_id):
        answer = json.loads(http_get(f"{cls.gateway.url}/api/v1/metrics").body)
        found = {}
        for group in answer["data"]:
            if group["labels"].get("job") != str(job_id):
                continue
            families = found.setdefault(group["labels"]["step"], {})
            for name, family in group.items():
                if isinstance(family, dict) and "metrics" in family:
                    families[name] = {tuple(sorted(metric["labels"].items())): float(metric["value"])
                                      for metric in family["metrics"]}
        return found

    def test_groups_are_called_as_the_original_called_them_and_by_step(self):
        job_id = self.profiled("exec sleep infinity", "-w", "c2")
        self.wait_steps(job_id, lambda s: "batch" in s, "the batch step")
        answer = json.loads(http_get(f"{self.gateway.url}/api/v1/metrics").body)
        groups = [group["labels"] for group in answer["data"] if group["labels"].get("job") == str(job_id)]
        self.assertIn({"job": str(job_id), "instance": "c2", "step": "batch"}, groups)

    def is_left(self, job_id, step):
        """Whether slurmstepd has said that it is: it has a tenth of a second to delete it, which a busy machine may not give."""
        word = re.compile(rf"\[{job_id}\.{step}\].*stays? there until it is found to be over")
        return any(word.search(log.read_text(errors="replace"))
                   for log in pathlib.Path(self.cluster.env["SANDBOX_STATE"], "log").glob("slurmd-*.log"))

    def wait_gone(self, job_id):
        wait_until(lambda: all(self.is_left(job_id, step) for step in self.steps(job_id)),
                   f"what is left of job {job_id} is nothing, or told to be left")
        if self.steps(job_id):
            wait_until(lambda: self.cluster.state(job_id) not in ("RUNNING", "COMPLETING"), f"Slurm knows that job {job_id} has ended")
            self.sweep()
            self.assertEqual(self.steps(job_id), {})

    def kill_stepds(self, job_id):
        self.cluster.run("pkill", "-KILL", "-f", rf"slurmstepd: \[{job_id}\.")

    def sweep(self):
        """Two minutes from now: what is young is left alone, because the job may be new to Slurm's answer."""
        environment = dict(os.environ, PATH=f"{self.cluster.env['SANDBOX_BIN']}:{os.environ['PATH']}",
                           SONDE_CLOCK=str(int(time.time()) + 120))
        done = subprocess.run([SONDE, "admin", "sweep-pushgateway", "--source=cli", self.gateway.url], text=True,
                              capture_output=True, env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_a_killed_slurmstepd_leaves_is_swept_by_the_agent(self):
        job_id = self.profiled("exec sleep infinity", "-w", "c4")
        self.wait_steps(job_id, lambda s: "batch" in s, "the batch step")
        clock = self.enterContext(Clock())
        agent = self.enterContext(Agent("-t", "1", f"--profile.pushgateway={self.gateway.url}", "--profile.socket=",
                                        env=clock.env))
        self.wait_family(agent, job_id, "jobs_rss")
        self.kill_stepds(job_id)

        def is_gone():
            clock.advance(10)  # as often as the agent goes round
            return not self.steps(job_id)
        wait_until(is_gone, "it is swept")

    def test_what_is_left_when_slurmstepd_and_slurmd_were_killed_is_swept(self):
        live, killed, headless = (self.profiled("exec sleep infinity", "-w", node) for node in ("c1", "c2", "c3"))
        for job_id in (live, killed, headless):
            self.wait_steps(job_id, lambda s: "batch" in s, "the batch step")
        self.kill_stepds(killed)
        self.cluster.run("scancel", str(killed))
        self.cluster.run("pkill", "-KILL", "-f", "slurmd.*-N *c3")
        self.kill_stepds(headless)
        self.cluster.run("scontrol", "update", "node=c3", "state=down", "reason=killed")
        for job_id in (killed, headless):
            wait_until(lambda: self.cluster.state(job_id) not in ("RUNNING", "COMPLETING"), "Slurm knows")
            self.assertTrue(self.steps(job_id))
        self.sweep()
        self.assertEqual((self.steps(killed), self.steps(headless)), ({}, {}))
        self.assertTrue(self.steps(live))

    def test_a_gateway_that_never_answers_keeps_no_job(self):
        gate = self.gate()
        job_id = self.batch(gate.wait, "--profile=task", "-w", "c4")
        self.wait_steps(job_id, lambda s: "batch" in s, "the batch step")
        self.gateway.pause()
        self.addCleanup(self.gateway.resume)
        gate.open()
        wait_until(lambda: self.cluster.state(job_id) == "COMPLETED", "it ends")
        self.assertEqual(self.cluster.said(job_id), "")  # nothing about it in the user's own output
        wait_until(lambda: self.is_left(job_id, "batch"), "that its group is left is told")


class Telling(Profiled):
    @classmethod
    def setUpClass(cls):
        cls.cluster = ProfileCluster(cls.suite, "ProfilePrometheusAgent=/sandbox/profile.sock\nProfilePrometheusFrequency=1\n"
                                     "ProfilePrometheusExtraLabels=user,account,partition,cluster\n")
        cls.addClassCleanup(cls.cluster.end)
        cls.socket = pathlib.Path(cls.cluster.env["SANDBOX_STATE"], "profile.sock")
        cls.agent = Agent("-t", "1", "--job.linger=2s", f"--profile.socket={cls.socket}")
        cls.addClassCleanup(cls.agent.stop)

    def steps(self, job_id):
        found = {}
        for family, samples in self.agent.metrics().families().items():
            for labels, value in samples.items():
                pairs = dict(labels)
                is_profile = family.startswith("slurm_profile_") and pairs.get("slurm_job") == str(job_id)
                if is_profile or ("step" in pairs and pairs.get("job") == str(job_id)):
                    found.setdefault(pairs["step"], {}).setdefault(family, {})[labels] = value
        return found

    def address(self):
        return f"127.0.0.1:{self.agent.port}"

    def test_labels_that_are_wanted_are_there(self):
        job_id = self.profiled(f"exec {self.cluster.behave} hold 5", "-w", "c2")
        steps = self.wait_steps(job_id, lambda s: "slurm_profile_task_resident_memory_bytes" in s.get("batch", {}), "it")
        labels, = steps["batch"]["slurm_profile_task_resident_memory_bytes"]
        self.assertLessEqual({"user": "alice", "account": "physics", "partition": "cpu", "instance": "c2",
                              "slurm_job": str(job_id), "task": "0"}.items(), dict(labels).items())

    def test_what_a_killed_slurmstepd_leaves_goes(self):
        job_id = self.profiled("exec sleep infinity")
        self.wait_steps(job_id, lambda s: "batch" in s, "the batch step")
        self.cluster.run("pkill", "-KILL", "-f", rf"slurmstepd: \[{job_id}\.")
        self.wait_gone(job_id)


for suite in SUITES:
    if suite in RELEASES:
        for kind in (Pushing, Telling):
            name = f"{kind.__name__}On{suite.capitalize()}"
            globals()[name] = type(name, (Behaviour, kind), {"suite": suite})
del kind

if __name__ == "__main__":
    import tap
    tap.main()
