#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent as sites have it: on a real Slurm with steps, arrays and several nodes, without cgroups, beside another scheduler,
under its unit, with settings that change."""
import base64
import os
import pathlib
import re
import shutil
import signal
import ssl
import subprocess
import tempfile
import threading
import unittest
import urllib.request

from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser as openmetrics_parser

import unit
from cluster import CGROUPS, Cluster, JobTest, processes_of
from fakejobs import remove_tree
from sonde import BUILD, Agent, wait_until
from capabilities import need

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
HOST = os.uname().nodename.split(".")[0]
MIB = 1 << 20


def setUpModule():
    JobTest.cluster = Cluster()
    unittest.addModuleCleanup(JobTest.cluster.end)


class Jobs(JobTest):
    """One agent for all; a row for a scheduler that nobody has."""

    @classmethod
    def setUpClass(cls):
        cls.flock = f"sonde-test-{os.getpid()}"  # scripts/guard removes what a killed one has left
        # Without Lustre: on a busy machine the thread that reads it may be late, which is a warning.
        flags = ("-t", "1", "--job.linger=24h", "--collector.steps", "--collector.tasks", "--no-collector.lustre")
        cls.agent = Agent(*flags, f"--cgroup.layout=flock=v1:{cls.flock}/herd-{{job}}")
        cls.addClassCleanup(cls.agent.stop)
        cls.unit_agent = Agent(*flags, starter=unit.prefix())
        cls.addClassCleanup(cls.unit_agent.stop)

    def test_every_task_of_every_step_counts(self):
        job_id = self.batch(f"srun -n3 --mem=20M --exact {self.cluster.behave} threads 2 & "
                            f"srun -n1 --mem=20M --exact {self.cluster.behave} hold 5 & wait", "-n4")
        self.wait_family(self.agent, job_id, "jobs_thread_count", lambda s: s.get((("proc_name", "behave"),)) == 7)
        wait_until(lambda: "sleep" in processes_of(job_id).values(), "the extern step has its process")
        wait_until(lambda: self.agent.job(job_id)["jobs_spawned_processes"][()] == len(processes_of(job_id)),
                   "every process is counted")
        # The tasks of a step are known when their directories are, which may be after their processes.
        job = self.wait_family(self.agent, job_id, "sonde_job_task_processes", lambda s: sum(
            dict(labels)["step"] in ("0", "1") and value == 1 for labels, value in s.items()) == 4)
        self.assertEqual(job["sonde_job_process_instances"][("process", "behave"),], 4)
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
        need("taskstats")
        names = {f"brief{number}" for number in range(12)}
        paths = " ".join(f"{self.cluster.place}/{name}" for name in names)
        gate = self.gate()
        job_id = self.batch(f"for path in {paths}; do ln -sf /bin/true $path; done; echo ready; {gate.wait} "
                            f"for path in {paths}; do $path; done; echo done; exec sleep infinity")
        self.wait_said(job_id, "ready")
        agent = self.enterContext(Agent("-t", "3600"))
        self.wait_family(agent, job_id, "jobs_rss")
        gate.open()
        self.wait_said(job_id, "done")
        other = self.submit("hold", "5")  # there is something new to tell
        self.wait_family(agent, other, "jobs_rss")
        self.wait_family(agent, job_id, "sonde_job_process_cpu_seconds_total",
                         lambda s: names <= {dict(labels)["process"] for labels in s})

    def test_scratch_is_remembered_after_the_file_was_closed(self):
        gate = self.gate()
        scratch = f"{self.cluster.place}/scratch"
        self.cluster.run("mkdir", "-p", "-m", "777", scratch)
        job_id = self.batch(f"exec 3>{scratch}/$SLURM_JOB_ID; {gate.wait} exec 3>&-; "
                            f"echo closed; exec {self.cluster.behave} hold 1")
        other = self.submit("hold", "1")
        job = self.wait_family(self.agent, job_id, "jobs_uses_scratch", lambda s: s[()] == 1)
        files = job["jobs_opened_files"][()]
        gate.open()
        self.wait_said(job_id, "closed")
        job = self.wait_family(self.agent, job_id, "jobs_opened_files", lambda s: s[()] < files)
        self.assertEqual(job["jobs_uses_scratch"][()], 1)
        self.wait_family(self.agent, other, "jobs_uses_scratch", lambda s: s[()] == 0)

    def test_under_the_unit_the_agent_tells_what_root_is_told(self):
        need("taskstats")
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

        def told():
            jobs = [agent.job(job_id) for agent in agents]
            return [({family: {labels for labels in rows if not passing & set(dict(labels).values())} for family, rows in job.items()},
                     {family: job[family] for family in same}) for job in jobs]

        def at_rest():
            """What each tells, once both have looked since the last child ended and nothing has changed in further looks."""
            before = told()
            for agent in agents:
                self.wait_ticks(agent, 1)
            after = told()
            return after if before == after else None
        one, other = wait_until(at_rest, "what both agents tell does not change any longer")
        self.assertEqual(one, other)
        answer = self.unit_agent.metrics()
        self.assertEqual(answer.value("sonde_agent_exit_records"), 1)
        self.assertEqual(answer.value("sonde_agent_may_read_processes"), 1)
        # On a busy machine the thread that asks drivers may be late.
        warnings = [line for line in self.unit_agent.log().splitlines() if "level=warn" in line and "GPU driver" not in line]
        self.assertEqual(warnings, [])

    def test_another_scheduler_needs_a_row_alone(self):
        directories = [CGROUPS / hierarchy / self.flock / "herd-7.shepherd" for hierarchy in ("memory", "cpuacct")]
        for directory in directories:
            directory.mkdir(parents=True)
            self.addCleanup(remove_tree, directory.parent)
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
            remove_tree(directory)
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


class Settings(JobTest):
    """One agent with a file of settings and one of users not to look at; both change."""

    SETTINGS = "collector:\n  processes: false\nscratch.pattern: '/lustre/'\n"

    def setUp(self):
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.settings, self.users = directory / "agent.yml", directory / "users"
        self.settings.write_text(self.SETTINGS)
        self.users.write_text("# nobody yet\n")
        self.agent = self.enterContext(Agent("-t", "1", "--job.linger=24h", f"--config.file={self.settings}", "-b", str(self.users)))

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
        self.wait_ticks(self.agent, 2)
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


class WebConfig(JobTest):
    def test_tls_and_a_password_guard_the_metrics(self):
        need("openssl")
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
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


class WithoutCgroups(JobTest):
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
        cls.agent = Agent("-t", "1", "--job.linger=24h", f"--path.sysfs={directory.name}")
        cls.addClassCleanup(cls.agent.stop)

    def test_jobs_are_what_their_slurmstepds_started(self):
        burn = self.submit("burn", "2", "2", flags=["-w", "c1"])
        spread = self.batch(f"srun --mem=20M {self.cluster.behave} hold 5", "-N2", "-n2", "-w", "c2,c3")
        said = float(self.wait_said(burn, r"cpu (\S+)")[1])
        job = self.wait_family(self.agent, burn, "jobs_cpu_time_total", lambda s: s[()] >= 0.99 * said)
        self.assertAlmostEqual(job["jobs_cpu_time_total"][()], said, delta=0.2)
        self.assertEqual(set(self.rows(self.agent, burn, "jobs_rss")), {"c1"})
        self.assertEqual(job["sonde_job_info"], {(("account", "physics"), ("user", "2001")): 1})
        wait_until(lambda: {node: rows.get((("process", "behave"),)) for node, rows in
                            self.rows(self.agent, spread, "sonde_job_process_instances").items()} == {"c2": 1, "c3": 1},
                   "a job on two nodes")
        self.assertEqual(self.agent.metrics().value("sonde_agent_has_cgroups"), 0)
        self.cluster.run("scancel", str(burn))
        wait_until(lambda: "jobs_rss" not in self.agent.job(burn), "it has ended")
        self.assertGreaterEqual(self.agent.job(burn)["jobs_cpu_time_total"][()], 0.99 * said)

    def test_a_job_goes_on_when_it_had_no_step_for_a_while(self):
        done = self.cluster.run("salloc", "--no-shell", "-p", "cpu", "-w", "c4", "--mem=100M", user="alice")
        job_id = self.end_later(int(re.search(r"Granted job allocation (\d+)", done.stderr)[1]))
        for number in (1, 2):
            begin, end = self.gate(), self.gate()
            script = f"{begin.wait} {self.cluster.behave} write 16 {self.cluster.place}/16; {end.wait}"
            step = threading.Thread(target=self.cluster.run, kwargs={"user": "alice"}, args=(
                "srun", "--jobid", str(job_id), "--mem=20M", "sh", "-c", script))
            step.start()
            self.wait_family(self.agent, job_id, "sonde_job_process_instances", lambda s: (("process", "sh"),) in s)
            begin.open()
            self.wait_family(self.agent, job_id, "jobs_write_mb", lambda s: s[()] >= number * 16)
            self.wait_ticks(self.agent, 2)
            end.open()
            step.join()
            wait_until(lambda: "jobs_rss" not in self.agent.job(job_id), "it has no step")
            self.assertAlmostEqual(self.agent.job(job_id)["jobs_write_mb"][()], number * 16, delta=1)

    def test_what_they_wrote_counts_after_they_have_ended(self):
        job_id = self.batch_known([self.agent], f"{self.cluster.behave} write 32 {self.cluster.place}/32; exec sleep infinity")
        self.wait_said(job_id, "wrote")
        self.wait_family(self.agent, job_id, "jobs_write_mb", lambda s: s[()] >= 32)
        self.wait_ticks(self.agent, 2)
        self.assertAlmostEqual(self.agent.job(job_id)["jobs_write_mb"][()], 32, delta=1)
        self.cluster.run("scancel", str(job_id))
        wait_until(lambda: "jobs_rss" not in self.agent.job(job_id), "it has ended")
        self.assertAlmostEqual(self.agent.job(job_id)["jobs_write_mb"][()], 32, delta=1)


if __name__ == "__main__":
    import tap
    tap.main()
