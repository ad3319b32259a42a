#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent with what sites have beside it: on a real Slurm with GPUs, scraped by a real Prometheus and pushing to a real
Pushgateway."""
import collections
import http.server
import os
import pathlib
import re
import tempfile
import threading
import unittest

from cluster import Cluster, JobTest, processes_of
from prometheus import Prometheus
from pushgateway import Pushgateway
from sonde import BUILD, DEADLINE, ROOT, Agent, Exporter, wait_until

HOST = os.uname().nodename.split(".")[0]
MIB = 1 << 20
MANUAL = (ROOT / "docs/agent.md").read_text()


def setUpModule():
    JobTest.cluster = Cluster()
    unittest.addModuleCleanup(JobTest.cluster.end)


class Scraped(JobTest):
    """By Prometheus, with the settings that ship, with one forgotten, and the exporter beside; with GPUs."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.gpus = pathlib.Path(directory.name, "gpus")
        cls.write_gpus()
        cls.agent = Agent("-t", "1", "--node.name=g1", f"--gpu.nvml={BUILD}/tests/gpu/nvml_standin.so",
                          env={"SONDE_NVML_STANDIN": str(cls.gpus)})
        cls.addClassCleanup(cls.agent.stop)
        cls.exporter = Exporter("--source=json", "--slurm.poll-limit=1ms", path=cls.cluster.env["SANDBOX_BIN"])
        cls.addClassCleanup(cls.exporter.stop)
        cls.prometheus = Prometheus(cls.cluster.env["SANDBOX_ROOT"], cls.configuration())
        cls.addClassCleanup(cls.prometheus.end)

    @classmethod
    def write_gpus(cls, *pids, more=""):
        """Four of them; the processes are all on the second."""
        lines = ["gpu", "gpu", *(f"process pid={pid} memory={300 * MIB} sm=40" for pid in pids), "gpu", "gpu", more]
        fresh = cls.gpus.with_suffix(".new")
        fresh.write_text("\n".join(lines) + "\n")
        fresh.rename(cls.gpus)

    @classmethod
    def configuration(cls):
        shipped = (ROOT / "packaging/prometheus/agent-scrape.yml").read_text()
        shipped = shipped.replace("15s", "1s").replace('"node001:9798", "node002:9798"', f'"127.0.0.1:{cls.agent.port}"')
        for name, port in (("forgetful", cls.agent.port), ("exporter", cls.exporter.port)):
            shipped += (f"  - job_name: {name}\n    scrape_interval: 1s\n"
                        f"    static_configs: [{{targets: ['127.0.0.1:{port}']}}]\n")
        return shipped

    def wait_query(self, expression, good=bool):
        return wait_until(lambda: (rows := self.prometheus.query(expression)) and good(rows) and rows, expression)

    def gpu_job(self):
        job_id = self.submit("hold", "5", flags=["-p", "gpu", "-w", "g1", "--gres=gpu:2"])
        self.wait_said(job_id, "held")
        pid, = (pid for pid, name in processes_of(job_id).items() if name == "behave")
        return job_id, pid

    def test_the_node_of_a_job_is_its_instance_where_labels_are_honoured(self):
        job_id = self.submit("hold", "5", flags=["-w", "c3"])
        row, = self.wait_query(f'jobs_rss{{slurm_job="{job_id}",job="sonde-agent"}}')
        self.assertEqual(row[0]["instance"], "c3")
        self.assertNotIn("exported_instance", row[0])
        row, = self.wait_query(f'jobs_rss{{slurm_job="{job_id}",job="forgetful"}}')
        self.assertEqual((row[0]["instance"], row[0]["exported_instance"]), (f"127.0.0.1:{self.agent.port}", "c3"))
        row, = self.wait_query('sonde_agent_up{job="sonde-agent"}')
        self.assertEqual(row[0]["instance"], f"127.0.0.1:{self.agent.port}")

    def test_a_gpu_that_is_held_and_not_used_is_the_join_of_agent_and_exporter(self):
        job_id, pid = self.gpu_job()
        self.write_gpus(pid)
        held = {gpu: tuple(sorted({"gpu": gpu, "gpu_instance": ""}.items())) for gpu in ("0", "1")}
        job = self.wait_family(self.agent, job_id, "sonde_job_gpu_utilization_ratio", lambda s: held["1"] in s)
        self.assertEqual(job["sonde_job_gpu_processes"], {held["0"]: 0, held["1"]: 1})
        self.assertEqual(job["sonde_job_gpu_memory_used_bytes"], {held["0"]: 0, held["1"]: 300 * MIB})
        self.assertEqual(job["sonde_job_gpu_utilization_ratio"].get(held["1"]), 0.4)
        self.assertEqual(job["jobs_gpus_used"], {(("gpuid", gpu),): 1 for gpu in ("0", "1")})
        self.assertEqual(job["sonde_job_gpus_allocated"], {(): 2})
        wait_until(lambda: len(self.agent.metrics().families()["sonde_gpu_info"]) == 4, "the driver tells of all")

        held = f'slurm_job_gpu_allocated{{job_id="{job_id}"}}'
        rows = self.wait_query(held, lambda rows: len(rows) == 2)
        self.assertEqual({(labels["node"], labels["gpu"]) for labels, _ in rows}, {("g1", "0"), ("g1", "1")})
        unused = re.search(r"^slurm_job_gpu_allocated unless .*$", MANUAL, re.M)[0]
        guard = re.search(r"`(and on \(node\) .*?)`", MANUAL)[1]

        def idle():
            return {(labels["node"], labels["gpu"]) for labels, _ in self.prometheus.query(f"{unused} {guard}")
                    if labels["job_id"] == str(job_id)}
        wait_until(lambda: idle() == {("g1", "0")}, "the first is not used")
        self.write_gpus()
        wait_until(lambda: idle() == {("g1", "0"), ("g1", "1")}, "now neither is used")

    def test_whether_the_driver_hangs_or_fails_the_rest_goes_on(self):
        job_id, pid = self.gpu_job()
        self.write_gpus(pid)
        self.wait_family(self.agent, job_id, "sonde_job_gpu_processes", lambda s: sum(s.values()) == 1)
        for rule in ("hang nvmlDeviceGetUtilizationRates", "fail nvmlDeviceGetCount_v2 999"):
            self.write_gpus(pid, more=rule)
            wait_until(lambda: self.agent.metrics().families()["sonde_agent_gpu_up"] == {(): 0}, rule)
            self.wait_ticks(self.agent, 1)
            job = self.agent.job(job_id)
            self.assertGreaterEqual(job["jobs_rss"][()], 5)
            self.assertEqual(job["jobs_gpus_used"], {(("gpuid", gpu),): 1 for gpu in ("0", "1")})
            self.assertNotIn("sonde_job_gpu_processes", job)
            self.assertNotIn("sonde_gpu_info", self.agent.metrics().families())
            if rule.startswith("hang"):
                self.write_gpus(pid)
                self.wait_family(self.agent, job_id, "sonde_job_gpu_processes", lambda s: sum(s.values()) == 1)
        # Each is told once, and its end: one that comes of a busy machine as well.
        told = wait_until(lambda: (words := re.findall("the GPU driver (does not answer|answers again)", self.agent.log())) and
                          len(words) > 2 and words, "both outages are told")
        self.assertEqual(told, (["does not answer", "answers again"] * len(told))[:len(told)])
        self.write_gpus()


class Gpus(JobTest):
    def test_a_gpu_may_be_named_by_its_uuid(self):
        gpus = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "gpus"
        gpus.write_text("gpu\ngpu uuid=GPU-11112222-3333-4444-5555-666677778888\n")
        agent = self.enterContext(Agent("-t", "1", f"--gpu.nvml={BUILD}/tests/gpu/nvml_standin.so",
                                        env={"SONDE_NVML_STANDIN": str(gpus)}))
        # Slurm takes SLURM_JOB_GPUS away from a job that has none.
        job_id = self.submit("hold", "5", flags=["--export=ALL,SLURM_STEP_GPUS=GPU-11112222-3333-4444-5555-666677778888"])
        second = {(("gpuid", "1"),): 1}
        self.wait_family(agent, job_id, "jobs_gpus_used", lambda s: s == second)
        gpus.write_text("hang nvmlDeviceGetCount_v2\n")
        wait_until(lambda: agent.metrics().value("sonde_agent_gpu_up") == 0, "the driver hangs")
        self.assertEqual(agent.job(job_id)["jobs_gpus_used"], second)
        agent.stop()  # although the driver hangs still

    def test_a_library_that_is_not_nvml_is_told_once(self):
        agent = self.enterContext(Agent("-t", "1", f"--gpu.nvml={BUILD}/tests/gpu/not_nvml.so"))
        job_id = self.submit("hold", "5")
        self.wait_family(agent, job_id, "jobs_cpu_percent")
        self.assertNotIn("sonde_gpu_info", agent.metrics().families())
        agent.wait_log("install the library of NVIDIA's driver")
        self.assertEqual(agent.log().count("install the library of NVIDIA's driver"), 1, agent.log())


class Full(http.server.BaseHTTPRequestHandler):
    """A gateway that has no room for anything."""

    def do_PUT(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.send_error(507)

    do_DELETE = do_PUT

    def log_message(self, *_):
        pass


class Pushes(JobTest):
    def agent(self, gateway, timeout=DEADLINE):
        return self.enterContext(Agent("-t", "1", "--job.linger=2s", f"--push.timeout={timeout}s", f"--push.url={gateway}"))

    def test_there_is_a_group_for_each_node_until_the_agent_stops(self):
        gateway = self.enterContext(Pushgateway())
        agent = self.agent(gateway.url)
        jobs = {node: self.submit("hold", "5", flags=["-w", node]) for node in ("c1", "c2")}

        def pushed(node):
            labels = (("instance", node), ("job", "jobs_exporter"), ("slurm_job", str(jobs[node])))
            return {tuple(sorted(row)): value for row, value in gateway.families().get("jobs_rss", {}).items()}.get(labels)
        for node in jobs:
            wait_until(lambda: (pushed(node) or 0) >= 5, f"{node} is pushed")
        self.assertLessEqual({HOST, "c1", "c2"}, gateway.instances("jobs_exporter"))
        self.cluster.run("scancel", str(jobs["c1"]))
        last = f'slurm_job="{jobs["c1"]}"'
        wait_until(lambda: last not in repr(agent.metrics().text), "the ended job is dropped")

        def gone():
            return not any(("slurm_job", str(jobs["c1"])) in row for rows in gateway.families().values() for row in rows)
        wait_until(gone, "and vanishes with the next push")
        self.assertGreaterEqual(pushed("c2"), 5)
        log = agent.stop()
        # It has three seconds for that: on a busy machine it says that something is left.
        if "stays on the Pushgateway" not in log:
            self.assertEqual(gateway.instances("jobs_exporter"), set())

    def test_a_gateway_that_hangs_delays_nobody(self):
        gateway = self.enterContext(Pushgateway())
        agent = self.agent(gateway.url)
        wait_until(lambda: agent.metrics().value("sonde_agent_push_up") == 1, "it pushes")
        gateway.pause()
        replaced = agent.metrics().value("sonde_agent_pushes_replaced_total")
        wait_until(lambda: agent.metrics().value("sonde_agent_pushes_replaced_total") > replaced, "a push hangs while ticks go on")
        self.wait_ticks(agent, 2)
        gateway.resume()
        pushes = agent.metrics().value("sonde_agent_pushes_total")
        wait_until(lambda: agent.metrics().value("sonde_agent_pushes_total") > pushes + 1, "it pushes on")

    def test_a_gateway_that_is_away_or_hangs_is_told_once(self):
        gateway = self.enterContext(Pushgateway())
        agent = self.agent(gateway.url, timeout=1)
        wait_until(lambda: agent.metrics().value("sonde_agent_push_up") == 1, "it pushes")

        # There is a group for each node that has jobs, of whatever test; they take turns, and whose it is nobody knows.
        def told(word):
            return re.findall(f"({word}).*instance=([^ \n]+)", agent.log())
        for leave, come in ((gateway.stop, gateway.start), (gateway.pause, gateway.resume)):
            failures = agent.metrics().value("sonde_agent_push_failures_total")
            outages, ends = len(told("cannot push")), len(told("the Pushgateway takes"))
            leave()
            wait_until(lambda: agent.metrics().value("sonde_agent_push_failures_total") >= failures + 2 and
                       len(told("cannot push")) > outages, "it fails twice, which is told")
            self.assertEqual(agent.metrics().value("sonde_agent_push_up"), 0)
            come()
            wait_until(lambda: agent.metrics().value("sonde_agent_push_up") == 1 and
                       len(told("the Pushgateway takes")) > ends, "it works, which is told")
        # Of each group a line for an outage and one for its end, in turn.
        lines = collections.defaultdict(list)
        for word, instance in told("cannot push|the Pushgateway takes"):
            lines[instance].append(word)
        for instance, words in lines.items():
            self.assertEqual(words, (["cannot push", "the Pushgateway takes"] * len(words))[:len(words)], instance)

    def test_a_full_gateway_is_told_once(self):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Full)
        self.addCleanup(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        agent = self.agent(f"http://127.0.0.1:{server.server_port}")
        wait_until(lambda: agent.metrics().value("sonde_agent_push_failures_total") >= 3, "it fails")
        agent.wait_log(f"instance={HOST}")
        self.assertEqual(agent.log().count(f"instance={HOST}"), 1, agent.log())
        agent.wait_log("status 507; it is full")


if __name__ == "__main__":
    import tap
    tap.main()
