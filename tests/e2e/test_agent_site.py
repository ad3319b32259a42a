#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent as sites have it: on a real Slurm with steps, arrays, several nodes and GPUs, without cgroups, beside another
scheduler, under its unit, scraped by a real Prometheus and pushing to a real Pushgateway."""
import base64
import collections
import contextlib
import http.server
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.request

from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser as openmetrics_parser

import unit
from cluster import Cluster, JobTest
from prometheus import Prometheus
from pushgateway import Pushgateway
from sonde import BUILD, ROOT, Agent, Exporter, shortest, wait_until

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
CGROUPS = pathlib.Path("/sys/fs/cgroup")
HOST = os.uname().nodename.split(".")[0]
MIB = 1 << 20
MANUAL = (ROOT / "docs/agent.md").read_text()


def setUpModule():
    JobTest.cluster = Cluster()
    unittest.addModuleCleanup(JobTest.cluster.end)


class SiteTest(JobTest):
    def rows(self, agent, job_id, family):
        """node → {other labels: value} of one family of a job."""
        found = {}
        for labels, value in agent.metrics().families().get(family, {}).items():
            pairs = dict(labels)
            if pairs.pop("job_id", pairs.pop("slurm_job", None)) == str(job_id):
                node = pairs.pop("node", pairs.pop("instance", None))
                found.setdefault(node, {})[tuple(sorted(pairs.items()))] = value
        return found

    def directory(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        return pathlib.Path(directory.name)


def processes_of(job_id):
    """pid → name, by the kernel; without the slurmstepds, which may be there too."""
    found = {}
    for file in CGROUPS.glob(f"memory/slurm*/uid_*/job_{job_id}/**/cgroup.procs"):
        for pid in file.read_text().split():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found[int(pid)] = pathlib.Path(f"/proc/{pid}/comm").read_text().strip()
    return {pid: name for pid, name in found.items() if name != "slurmstepd"}


class Jobs(SiteTest):
    """One agent for all; a row for a scheduler that nobody has."""

    @classmethod
    def setUpClass(cls):
        cls.agent = Agent("-t", "1", "--collector.steps", "--collector.tasks", "--cgroup.layout=flock=v1:flock/herd-{job}")
        cls.addClassCleanup(cls.agent.stop)
        cls.unit_agent = Agent("-t", "1", "--collector.steps", "--collector.tasks", starter=unit.prefix())
        cls.addClassCleanup(cls.unit_agent.stop)

    def test_every_task_of_every_step_counts(self):
        job_id = self.batch(f"srun -n3 --mem=20M --exact {self.cluster.behave} threads 2 & "
                            f"srun -n1 --mem=20M --exact {self.cluster.behave} hold 5 & wait", "-n4")
        job = self.wait_family(self.agent, job_id, "sonde_job_process_instances",
                               lambda s: s.get((("process", "behave"),)) == 4)
        wait_until(lambda: self.agent.job(job_id)["jobs_spawned_processes"][()] == len(processes_of(job_id)),
                   "every process is counted")
        job = self.agent.job(job_id)
        self.assertEqual(job["jobs_thread_count"][("proc_name", "behave"),], 7)
        steps = job["sonde_job_step_processes"]
        self.assertEqual({dict(labels)["step"] for labels in steps}, {"extern", "batch", "0", "1"})
        self.assertEqual(sorted((steps[("step", "0"),], steps[("step", "1"),])), [1, 3])
        self.assertEqual(sum(steps.values()), job["jobs_spawned_processes"][()])
        three = "0" if steps[("step", "0"),] == 3 else "1"
        tasks = {labels: value for labels, value in job["sonde_job_task_processes"].items()
                 if dict(labels)["step"] == three}
        self.assertEqual(tasks, {(("step", three), ("task", str(i))): 1 for i in range(3)})
        for family in ("cpu_seconds_total", "memory_bytes"):
            self.assertEqual(len([1 for labels in job[f"sonde_job_task_{family}"] if dict(labels)["step"] == three]), 3)

    def test_a_job_on_two_nodes_is_told_for_each(self):
        job_id = self.batch(f"srun --mem=20M {self.cluster.behave} hold 5", "-N2", "-n2", "-w", "c1,c2")
        wait_until(lambda: {node: rows.get((("process", "behave"),)) for node, rows in
                            self.rows(self.agent, job_id, "sonde_job_process_instances").items()} == {"c1": 1, "c2": 1},
                   "both nodes")
        self.assertEqual(set(self.rows(self.agent, job_id, "jobs_rss")), {"c1", "c2"})
        self.assertEqual(set(self.rows(self.agent, job_id, "sonde_job_info")), {"c1", "c2"})

    def test_parts_of_a_heterogeneous_job_are_jobs(self):
        job_id = self.batch(f"srun --het-group=0,1 --mem=20M {self.cluster.behave} hold 5",
                            "-n1", "-w", "c1", "--mem=60M", ":", "-n1", "-w", "c2", "--mem=60M")
        for part, node in ((job_id, "c1"), (job_id + 1, "c2")):
            wait_until(lambda: self.rows(self.agent, part, "sonde_job_process_instances").get(node, {})
                       .get((("process", "behave"),)) == 1, f"job {part} on {node}")
            self.assertEqual(set(self.rows(self.agent, part, "sonde_job_info")), {node})

    def test_tasks_of_an_array_have_ids_of_their_own(self):
        job_id = self.submit("hold", "5", flags=["--array=3-4"])
        ask = ("squeue", "-h", "-r", "-j", str(job_id), "-t", "R", "-o", "%A")
        ids = wait_until(lambda: (lines := self.cluster.lines(*ask)) and len(lines) == 2 and lines, "both run")
        for task in ids:
            self.wait_family(self.agent, int(task), "jobs_rss", lambda s: s[()] >= 5)
        self.assertEqual(len(set(ids)), 2)

    def test_programs_that_no_look_saw_are_known_by_their_names(self):
        names = {f"brief{number}" for number in range(12)}
        paths = " ".join(f"{self.cluster.place}/{name}" for name in names)
        job_id = self.batch(f"for path in {paths}; do ln -sf /bin/true $path; done; echo ready; "
                            f"while [ ! -e go-$SLURM_JOB_ID ]; do sleep 0.1; done; for path in {paths}; do $path; done; "
                            "echo done; exec sleep 600")
        self.wait_said(job_id, "ready")
        agent = self.enterContext(Agent("-t", "3600"))
        self.wait_family(agent, job_id, "jobs_rss")
        self.cluster.run("touch", f"{self.cluster.place}/go-{job_id}")
        self.wait_said(job_id, "done")
        other = self.submit("hold", "5")  # there is something new to tell
        self.wait_family(agent, other, "jobs_rss")
        self.wait_family(agent, job_id, "sonde_job_process_cpu_seconds_total",
                         lambda s: names <= {dict(labels)["process"] for labels in s})

    def test_scratch_is_remembered_after_the_file_was_closed(self):
        go = f"{self.cluster.place}/go-$SLURM_JOB_ID"
        scratch = f"{self.cluster.place}/scratch"
        self.cluster.run("mkdir", "-p", "-m", "777", scratch)
        job_id = self.batch(f"exec 3>{scratch}/$SLURM_JOB_ID; while [ ! -e {go} ]; do sleep 0.1; done; exec 3>&-; "
                            f"echo closed; exec {self.cluster.behave} hold 1")
        other = self.submit("hold", "1")
        job = self.wait_family(self.agent, job_id, "jobs_uses_scratch", lambda s: s[()] == 1)
        files = job["jobs_opened_files"][()]
        self.cluster.run("touch", f"{self.cluster.place}/go-{job_id}")
        self.wait_said(job_id, "closed")
        job = self.wait_family(self.agent, job_id, "jobs_opened_files", lambda s: s[()] < files)
        self.assertEqual(job["jobs_uses_scratch"][()], 1)
        self.wait_family(self.agent, other, "jobs_uses_scratch", lambda s: s[()] == 0)

    def test_under_the_unit_the_agent_tells_what_root_is_told(self):
        job_id = self.submit_known([self.agent, self.unit_agent], "unawaited", "8", self.cluster.place, "3")
        self.wait_said(job_id, "children are done")
        agents = (self.agent, self.unit_agent)
        for agent in agents:
            job = self.wait_family(agent, job_id, "jobs_write_mb", lambda s: s[()] >= 24)
            self.assertAlmostEqual(job["jobs_write_mb"][()], 24, delta=1)
            self.wait_family(agent, job_id, "jobs_opened_files")
            wait_until(lambda: "jobs_cpu_percent" in agent.job(job_id), "two ticks")
        # A child of slurmstepd is called so for a moment, and then slurm_script, which one of them may see.
        passing = {"slurmstepd", "slurm_script", "other"}
        same = ("sonde_job_info", "jobs_spawned_processes", "jobs_opened_files", "sonde_job_gpus_allocated")

        def alike():
            """What each tells, once both have looked since the last child ended."""
            told = [agent.job(job_id) for agent in agents]
            shapes = [{family: {labels for labels in rows if not passing & set(dict(labels).values())}
                       for family, rows in job.items()} for job in told]
            return shapes[0] == shapes[1] and all(told[0][family] == told[1][family] for family in same)
        wait_until(alike, "both agents tell the same")
        answer = self.unit_agent.metrics()
        self.assertEqual(answer.value("sonde_agent_exit_records"), 1)
        self.assertEqual(answer.value("sonde_agent_may_read_processes"), 1)
        self.assertNotIn("level=warn", self.unit_agent.log())

    def test_another_scheduler_needs_a_row_alone(self):
        directories = [CGROUPS / hierarchy / "flock/herd-7.shepherd" for hierarchy in ("memory", "cpuacct")]
        for directory in directories:
            directory.mkdir(parents=True)
            self.addCleanup(lambda path=directory: (path.exists() and path.rmdir(), path.parent.rmdir()))
        place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        place.chmod(0o755)  # the build may be where only root may go
        shutil.copy(BUILD / "tests/agent/behave", place)
        process = subprocess.Popen(["setpriv", "--reuid=64999", "--clear-groups", "sh", "-c",
                                    f"echo ready; read go; exec {place}/behave hold 20"],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "ready\n")
        for directory in directories:
            (directory / "cgroup.procs").write_text(str(process.pid))
        process.stdin.write("go\n")
        process.stdin.flush()
        job = self.wait_family(self.agent, "7.shepherd", "jobs_rss", lambda s: s[()] >= 20)
        self.assertEqual(job["jobs_spawned_processes"][()], 1)
        self.assertEqual(job["sonde_job_info"], {(("account", ""), ("user", "64999")): 1})
        self.assertGreater(job["jobs_cpu_time_total"][()], 0)
        self.assertGreaterEqual(job["sonde_job_memory_anonymous_bytes"][()], 20 * MIB)
        self.assertEqual(self.rows(self.agent, "7.shepherd", "jobs_rss").keys(), {HOST})
        process.kill()
        process.wait()
        for directory in directories:
            directory.rmdir()
        wait_until(lambda: "jobs_rss" not in self.agent.job("7.shepherd"), "it has ended")
        self.assertIn("jobs_cpu_time_total", self.agent.job("7.shepherd"))

    def test_somebody_elses_parsers_and_promtool_find_nothing_new(self):
        job_id = self.submit("hold", "5")
        self.wait_family(self.agent, job_id, "jobs_cpu_percent")
        answer = self.agent.metrics()
        families = {family.name: family for family in text_parser.text_string_to_metric_families(answer.text)}
        self.assertEqual(len(answer.samples()), sum(len(family.samples) for family in families.values()))
        packed = self.agent.metrics(Accept=OPENMETRICS)
        openmetrics = {family.name: family for family in openmetrics_parser.text_string_to_metric_families(packed.text)}
        self.assertEqual(openmetrics["sonde_job_cpu_seconds"].type, "counter")
        self.assertIn("jobs_cpu_time_total", openmetrics)
        done = self.cluster.run("promtool", "check", "metrics", input=answer.text, check=False)
        findings = {line for line in (done.stdout + done.stderr).splitlines() if line.strip()}
        known = pathlib.Path(__file__).with_name("promtool_agent.txt").read_text().splitlines()
        self.assertEqual(findings, set(known))


class Scraped(SiteTest):
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
        job = self.wait_family(self.agent, job_id, "sonde_job_gpu_processes", lambda s: sum(s.values()) == 1)
        held = {gpu: tuple(sorted({"gpu": gpu, "gpu_instance": ""}.items())) for gpu in ("0", "1")}
        self.assertEqual(job["sonde_job_gpu_processes"], {held["0"]: 0, held["1"]: 1})
        self.assertEqual(job["sonde_job_gpu_memory_used_bytes"], {held["0"]: 0, held["1"]: 300 * MIB})
        self.assertEqual(job["sonde_job_gpu_utilization_ratio"].get(held["1"]), 0.4)
        self.assertEqual(job["jobs_gpus_used"], {(("gpuid", gpu),): 1 for gpu in ("0", "1")})
        self.assertEqual(job["sonde_job_gpus_allocated"], {(): 2})
        self.assertEqual(len(self.agent.metrics().families()["sonde_gpu_info"]), 4)

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
            wait_until(lambda: self.agent.metrics().value("sonde_agent_gpu_up") == 0, rule)
            ticks = 'sonde_agent_samples_total{cause="tick"}'
            before = self.agent.metrics().value(ticks)
            wait_until(lambda: self.agent.metrics().value(ticks) > before + 1, "ticks go on")
            job = self.agent.job(job_id)
            self.assertGreaterEqual(job["jobs_rss"][()], 5)
            self.assertEqual(job["jobs_gpus_used"], {(("gpuid", gpu),): 1 for gpu in ("0", "1")})
            self.assertNotIn("sonde_job_gpu_processes", job)
            self.assertNotIn("sonde_gpu_info", self.agent.metrics().families())
            if rule.startswith("hang"):
                self.write_gpus(pid)
                self.wait_family(self.agent, job_id, "sonde_job_gpu_processes", lambda s: sum(s.values()) == 1)
        wait_until(lambda: self.agent.log().count("the GPU driver does not answer") == 2, "each outage is told once")
        self.write_gpus()


class Gpus(SiteTest):
    def test_a_gpu_may_be_named_by_its_uuid(self):
        gpus = self.directory() / "gpus"
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
        began = time.monotonic()
        agent.stop()
        self.assertLess(time.monotonic() - began, 5)

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


class Pushes(SiteTest):
    FLAGS = ("-t", "1", "--job.linger=2s", "--push.timeout=1s")

    def quick(self, agent):
        """A scrape, which must not wait for anybody."""
        self.assertLess(shortest(agent.metrics), 1)
        return agent.metrics()

    def test_there_is_a_group_for_each_node_until_the_agent_stops(self):
        gateway = self.enterContext(Pushgateway())
        agent = self.enterContext(Agent(*self.FLAGS, f"--push.url={gateway.url}"))
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
        agent.stop()
        self.assertEqual(gateway.instances("jobs_exporter"), set())

    def test_a_gateway_that_is_away_or_hangs_delays_nobody(self):
        gateway = self.enterContext(Pushgateway())
        agent = self.enterContext(Agent(*self.FLAGS, f"--push.url={gateway.url}"))
        wait_until(lambda: self.quick(agent).value("sonde_agent_push_up") == 1, "it pushes")

        # There is a group for each node that has jobs, of whatever test; they take turns, and whose it is nobody knows.
        def told(word):
            return re.findall(f"({word}).*instance=([^ \n]+)", agent.log())
        for leave, come in ((gateway.stop, gateway.start), (gateway.pause, gateway.resume)):
            failures = agent.metrics().value("sonde_agent_push_failures_total")
            outages, ends = len(told("cannot push")), len(told("the Pushgateway takes"))
            leave()
            wait_until(lambda: self.quick(agent).value("sonde_agent_push_failures_total") >= failures + 2 and
                       len(told("cannot push")) > outages, "it fails twice, which is told")
            self.assertEqual(agent.metrics().value("sonde_agent_push_up"), 0)
            come()
            wait_until(lambda: self.quick(agent).value("sonde_agent_push_up") == 1 and
                       len(told("the Pushgateway takes")) > ends, "it works, which is told", 40)
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
        agent = self.enterContext(Agent(*self.FLAGS, f"--push.url=http://127.0.0.1:{server.server_port}"))
        wait_until(lambda: self.quick(agent).value("sonde_agent_push_failures_total") >= 3, "it fails")
        agent.wait_log(f"instance={HOST}")
        self.assertEqual(agent.log().count(f"instance={HOST}"), 1, agent.log())
        agent.wait_log("status 507; it is full")


class Settings(SiteTest):
    """One agent with a file of settings and one of users not to look at; both change."""

    SETTINGS = "collector:\n  processes: false\nscratch.pattern: '/lustre/'\n"

    def setUp(self):
        directory = self.directory()
        self.settings, self.users = directory / "agent.yml", directory / "users"
        self.settings.write_text(self.SETTINGS)
        self.users.write_text("# nobody yet\n")
        self.agent = self.enterContext(Agent("-t", "1", f"--config.file={self.settings}", "-b", str(self.users)))

    def reload(self, words="configuration reloaded", agent=None):
        agent = agent or self.agent
        count = agent.log().count(words)
        agent.process.send_signal(signal.SIGHUP)
        wait_until(lambda: agent.log().count(words) > count, words)

    def test_what_must_not_be_told_any_longer_goes_before_the_next_tick(self):
        self.settings.write_text(self.SETTINGS.replace("false", "true"))
        job_id = self.submit("name", "confidential")
        self.wait_said(job_id, "is called so")
        agent = self.enterContext(Agent("-t", "3600", f"--config.file={self.settings}", "-b", str(self.users)))
        self.wait_family(agent, job_id, "jobs_thread_count", lambda s: (("proc_name", "confidential"),) in s)
        self.settings.write_text(self.SETTINGS)
        self.reload(agent=agent)
        wait_until(lambda: "confidential" not in agent.metrics().text, "names")
        self.assertIn("jobs_spawned_processes", agent.job(job_id))
        self.users.write_text("2001\n")
        self.reload(agent=agent)
        wait_until(lambda: not agent.job(job_id), "jobs")

    def test_names_of_processes_are_published_nowhere_without_their_collector(self):
        job_id = self.submit("name", "confidential")
        self.wait_said(job_id, "is called so")
        self.wait_family(self.agent, job_id, "jobs_cpu_percent")
        for path in ("/metrics", "/metrics?collect[]=jobs&collect[]=activity"):
            for accept in ("text/plain", OPENMETRICS):
                text = self.agent.get(path, headers={"Accept": accept}).text
                self.assertIn(f'jobs_spawned_processes{{slurm_job="{job_id}"', text)
                for word in ("confidential", "behave", "proc_name", "process="):
                    self.assertNotIn(word, text)
        self.assertEqual(self.agent.get("/metrics?collect[]=processes").status, 400)
        self.assertNotIn("jobs_rss", self.agent.get("/metrics?collect[]=cgroup").text)
        self.settings.write_text(self.SETTINGS.replace("false", "true"))
        self.reload()
        self.wait_family(self.agent, job_id, "jobs_thread_count", lambda s: (("proc_name", "confidential"),) in s)
        self.settings.write_text("collector: [\n")
        self.reload("configuration not reloaded, the old one stays")
        self.assertIn("confidential", self.agent.metrics().text)
        self.settings.write_text(self.SETTINGS)
        self.reload()
        wait_until(lambda: "confidential" not in self.agent.metrics().text, "names go")

    def test_users_not_to_look_at_are_named_or_numbered(self):
        jobs = [self.submit("hold", "5"), self.submit("hold", "5", user="root"), self.submit("hold", "5")]
        for job_id in jobs:
            self.wait_family(self.agent, job_id, "jobs_rss", lambda s: s[()] >= 5)
        self.cluster.run("scancel", str(jobs[2]))
        wait_until(lambda: "jobs_rss" not in self.agent.job(jobs[2]), "it has ended")
        self.assertIn("jobs_cpu_time_total", self.agent.job(jobs[2]))
        self.users.write_text("2001 # alice, whom this host does not know\nroot\n")
        self.reload()
        wait_until(lambda: not any(self.agent.job(job_id) for job_id in jobs), "they are not looked at")
        young = self.submit("hold", "5")
        self.wait_said(young, "held")
        ticks = 'sonde_agent_samples_total{cause="tick"}'
        before = self.agent.metrics().value(ticks)
        wait_until(lambda: self.agent.metrics().value(ticks) > before + 2, "two ticks")
        self.assertFalse(self.agent.job(young))
        self.users.write_text("2001\n")
        self.reload()
        self.wait_family(self.agent, jobs[1], "jobs_rss", lambda s: s[()] >= 5)
        self.assertFalse(self.agent.job(jobs[0]))

    def test_scratch_is_what_the_pattern_says(self):
        place = f"{self.cluster.place}/lustre"
        self.cluster.run("mkdir", "-p", "-m", "777", place, f"{self.cluster.place}/scratch")
        fast = self.submit("files", "2", place)
        other = self.submit("files", "2", f"{self.cluster.place}/scratch")
        self.wait_family(self.agent, fast, "jobs_uses_scratch", lambda s: s[()] == 1)
        self.wait_family(self.agent, other, "jobs_opened_files", lambda s: s[()] >= 2)
        self.assertEqual(self.agent.job(other)["jobs_uses_scratch"][()], 0)


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class WebConfig(SiteTest):
    def test_tls_and_a_password_guard_the_metrics(self):
        directory = self.directory()
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "1", "-subj", "/CN=agent", "-addext", "subjectAltName=IP:127.0.0.1",
                        "-keyout", directory / "key.pem", "-out", directory / "cert.pem"], check=True, capture_output=True)
        # "correct horse", bcrypt at a cost low enough for a test
        (directory / "web.yml").write_text(
            "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n"
            "basic_auth_users:\n  alice: $2b$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2\n")
        agent = self.enterContext(Agent("-t", "1", f"--web.config.file={directory / 'web.yml'}"))
        trust = ssl.create_default_context(cafile=directory / "cert.pem")

        def status(password):
            token = base64.b64encode(f"alice:{password}".encode()).decode()
            request = urllib.request.Request(f"{agent.url}/metrics", headers={"Authorization": f"Basic {token}"})
            try:
                with urllib.request.urlopen(request, context=trust) as reply:
                    return reply.status
            except urllib.error.HTTPError as error:
                return error.code
        self.assertRegex(agent.url, "^https:")
        self.assertEqual((status("correct horse"), status("wrong")), (200, 401))


class WithoutCgroups(SiteTest):
    """A site of proctrack/linuxproc."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster(cgroup="none")
        cls.addClassCleanup(cls.cluster.end)
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        # Other clusters of this machine use its cgroups; here nobody does.
        for hierarchy in ("memory", "cpuacct", "freezer"):
            pathlib.Path(directory.name, "fs/cgroup", hierarchy).mkdir(parents=True)
        cls.agent = Agent("-t", "1", f"--path.sysfs={directory.name}")
        cls.addClassCleanup(cls.agent.stop)

    def test_jobs_are_what_their_slurmstepds_started(self):
        burn = self.submit("burn", "2", "2", flags=["-w", "c1"])
        spread = self.batch(f"srun --mem=20M {self.cluster.behave} hold 5", "-N2", "-n2", "-w", "c2,c3")
        said = self.wait_said(burn, r"cpu (\S+)")
        job = self.wait_family(self.agent, burn, "jobs_cpu_time_total", lambda s: s[()] >= 1.9)
        self.assertAlmostEqual(job["jobs_cpu_time_total"][()], float(said[1]), delta=0.2)
        self.assertEqual(set(self.rows(self.agent, burn, "jobs_rss")), {"c1"})
        self.assertEqual(job["sonde_job_info"], {(("account", "physics"), ("user", "2001")): 1})
        wait_until(lambda: {node: rows.get((("process", "behave"),)) for node, rows in
                            self.rows(self.agent, spread, "sonde_job_process_instances").items()} == {"c2": 1, "c3": 1},
                   "a job on two nodes")
        self.assertEqual(self.agent.metrics().value("sonde_agent_has_cgroups"), 0)
        self.cluster.run("scancel", str(burn))
        wait_until(lambda: "jobs_rss" not in self.agent.job(burn), "it has ended")
        self.assertGreaterEqual(self.agent.job(burn)["jobs_cpu_time_total"][()], 1.9)

    def test_a_job_goes_on_when_it_had_no_step_for_a_while(self):
        # From the first on, jobs are looked for at every tick: each step lasts long enough to be seen.
        self.wait_family(self.agent, self.submit("hold", "5", flags=["-w", "c1"]), "jobs_rss")
        done = self.cluster.run("salloc", "--no-shell", "-p", "cpu", "-w", "c4", "--mem=100M", user="alice")
        job_id = self.end_later(int(re.search(r"Granted job allocation (\d+)", done.stderr)[1]))
        for number in (1, 2):
            self.cluster.run("srun", "--jobid", str(job_id), "--mem=20M", "sh", "-c",
                             f"{self.cluster.behave} write 16 {self.cluster.place}/16; sleep 2.5", user="alice")
            wait_until(lambda: "jobs_rss" not in self.agent.job(job_id), "it has no step")
            self.assertAlmostEqual(self.agent.job(job_id)["jobs_write_mb"][()], number * 16, delta=1)

    def test_what_they_wrote_counts_after_they_have_ended(self):
        job_id = self.batch(f"{self.cluster.behave} write 32 {self.cluster.place}/32; sleep 600")
        self.wait_said(job_id, "wrote")
        job = self.wait_family(self.agent, job_id, "jobs_write_mb", lambda s: s[()] >= 32)
        self.assertAlmostEqual(job["jobs_write_mb"][()], 32, delta=1)
        self.cluster.run("scancel", str(job_id))
        wait_until(lambda: "jobs_rss" not in self.agent.job(job_id), "it has ended")
        self.assertAlmostEqual(self.agent.job(job_id)["jobs_write_mb"][()], 32, delta=1)


if __name__ == "__main__":
    import tap
    tap.main()
