#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What `sonde agent` does whatever runs on the node: on a machine without jobs, made of a few files."""
import os
import pathlib
import signal
import socket
import subprocess
import tempfile
import unittest

from clock import Clock
from sonde import BUILD, DEADLINE, SONDE, Agent, wait_until

OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"


class AgentTest(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)
        (self.directory / "proc/self").mkdir(parents=True)
        (self.directory / "proc/self/mountinfo").write_text(
            "30 1 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
        (self.directory / "sys/fs/cgroup").mkdir(parents=True)
        self.paths = (f"--path.procfs={self.directory}/proc", f"--path.sysfs={self.directory}/sys")

    def agent(self, *flags, **arguments):
        agent = self.enterContext(Agent(*self.paths, "-t", "1", *flags, **arguments))
        wait_until(lambda: agent.get("/-/ready").status == 200, "a first sample")
        return agent

    def write(self, name, text):
        path = self.directory / name
        path.write_text(text)
        return path

    def run_agent(self, *flags, name="agent"):
        words = [SONDE, "agent"] if name == "agent" else [name]
        return subprocess.run([*words, *self.paths, *flags], capture_output=True, text=True, timeout=DEADLINE)

    def reload(self, agent):
        return agent.get("/-/reload", method="POST", data=b"")


class Serving(AgentTest):
    def test_every_format_and_encoding_says_the_same(self):
        agent = self.agent("--node.name=n1")
        for accept in ("text/plain", OPENMETRICS):
            for encoding in ("identity", "gzip"):
                # the first time it may have to be made of another format, then it is ready
                for _ in range(2):
                    answer = agent.metrics(Accept=accept, Accept_Encoding=encoding)
                    self.assertEqual(answer.value('sonde_agent_info{node="n1"}'), 1)
                    self.assertEqual(answer.value("sonde_agent_up"), 1)
                    self.assertEqual(answer.text.endswith("# EOF\n"), accept == OPENMETRICS)
        wait_until(lambda: agent.metrics(Accept=OPENMETRICS, Accept_Encoding="gzip")
                   .headers["Content-Encoding"] == "gzip", "the format is rendered at the next tick")

    def test_the_page_for_people_names_the_node(self):
        page = self.agent("--node.name=n1", "--no-collector.processes").get("/").text
        self.assertIn("node n1", page)
        self.assertIn('<a href="/metrics?collect[]=cgroup">', page)
        self.assertNotIn("collect[]=processes", page)

    def test_it_ends_when_told_to(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            agent = Agent(*self.paths)
            agent.stop(number)


class Gpus(AgentTest):
    def start(self, *flags, env=()):
        self.clock = self.enterContext(Clock(stands=1800000000))
        return self.agent(*flags, env={**self.clock.env, **dict(env)})

    def tick(self, agent, seconds):
        """Takes one more sample, that much later."""
        def samples():
            return agent.metrics().value('sonde_agent_samples_total{cause="tick"}')
        before = samples()
        self.clock.advance(seconds)
        wait_until(lambda: samples() > before, "a sample")

    def test_a_late_reading_on_a_node_without_gpus_is_no_fault_of_a_driver(self):
        agent = self.start()
        for _ in range(5):
            self.tick(agent, 3600)  # by then the last reading of GPUs is an hour old
        self.assertNotIn("sonde_agent_gpu_up", agent.metrics().families())
        self.assertNotIn("GPU driver", agent.log())

    def test_a_driver_that_replies_is_up_however_short_the_ticks(self):
        gpus = self.write("gpus", "gpu\n")
        agent = self.start("-t", "0.1", f"--gpu.nvml={BUILD}/tests/gpu/nvml_standin.so", env={"SONDE_NVML_STANDIN": str(gpus)})

        def is_up():
            return agent.metrics().families().get("sonde_agent_gpu_up") == {(): 1}
        wait_until(lambda: self.tick(agent, 0.1) or is_up(), "it replies")
        for _ in range(8):  # GPUs are read once a second
            self.tick(agent, 0.1)
            self.assertTrue(is_up(), agent.log())


class Flags(AgentTest):
    def test_a_port_that_is_taken_is_told(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            done = self.run_agent(f"--web.listen-address=127.0.0.1:{taken.getsockname()[1]}")
        self.assertEqual(done.returncode, 1)
        self.assertIn("is taken", done.stderr)

    def test_a_token_that_is_none_or_no_secret_is_told(self):
        flags = ("--ingest.url=http://127.0.0.1:1", f"--ingest.spool-dir={self.directory}/spool", "--ingest.token-file")
        for words, text in (("No such file", None), ("holds no token", "")):
            token = self.directory / "token" if text is None else self.write("token", text)
            done = self.run_agent("--web.listen-address=127.0.0.1:0", *flags, str(token))
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(words, done.stderr)
        token = self.write("token", "s3cret\n")
        for mode, is_told in ((0o600, False), (0o644, True)):
            token.chmod(mode)
            self.assertEqual("everybody may read or change" in self.agent(*flags, str(token)).log(), is_told)

    def test_mistakes_are_told(self):
        self.write("users", "no such user\n")
        for flags, sentence in ((["-t", "soon"], '-t: "soon" is not a duration'),
                                (["-b", f"{self.directory}/users"], "is neither a user id nor a user name"),
                                (["--cgroup.layout=nonsense"], "--cgroup.layout:"),
                                (["--scratch.pattern=("], "--scratch.pattern:"),
                                (["--user=no-such-user"], "there is no user"),
                                (["--push.url=gopher://x"], "--push.url:")):
            done = self.run_agent("--web.listen-address=127.0.0.1:0", *flags)
            self.assertEqual((done.returncode, done.stdout), (2, ""), flags)
            self.assertIn(sentence, done.stderr)

    def test_the_man_page_and_help_know_the_letters(self):
        self.assertIn("-t, --timer=SECONDS", self.run_agent("--help").stdout)
        self.assertIn(r"\-b, \-\-blacklist", self.run_agent("--man").stdout)

    def test_names_that_nobody_knows_are_told(self):
        users = self.write("users", "0\nsonde-nobody-knows\n")
        agent = self.agent("-b", str(users))
        told = wait_until(lambda: [line for line in agent.log().splitlines() if "users of --blacklist are not known" in line],
                          "it is told")
        self.assertIn("sonde-nobody-knows", told[0])


class JobsExporter(AgentTest):
    def test_its_name_starts_the_agent_and_pushes_where_it_did(self):
        link = self.directory / "jobs_exporter"
        link.symlink_to(SONDE)
        self.assertIn("Usage: sonde agent", self.run_agent("--help", name=link).stdout)
        self.assertIn("[default: http://localhost:9091]", self.run_agent("--help", name=link).stdout)
        self.assertNotIn("[default: http://localhost:9091]", self.run_agent("--help").stdout)


class Reload(AgentTest):
    def test_everything_that_can_change_takes_effect(self):
        config = self.write("agent.yml", "collector:\n  gpu: true\n")
        agent = self.agent(f"--config.file={config}")
        self.assertIn('sonde_collector_success{collector="gpu"}', agent.metrics().text)
        config.write_text("collector:\n  gpu: false\nmetrics.exclude: sonde_agent_walks\n")
        self.assertEqual(self.reload(agent).status, 200)
        text = agent.metrics().text
        self.assertNotIn('sonde_collector_success{collector="gpu"}', text)
        self.assertNotIn("sonde_agent_walks", text)
        self.assertEqual(agent.get("/metrics?collect[]=gpu").status, 400)

    def test_a_mistake_or_a_fixed_setting_changes_nothing(self):
        config = self.write("agent.yml", "collector:\n  gpu: true\n")
        agent = self.agent(f"--config.file={config}")
        for text, sentence in (("collector:\n  gpu: false\nnode.name: other\n", "node.name has changed: restart"),
                               ("collector:\n  gpu: false\nmax-jobs: 0\n", "--max-jobs must be from"),
                               ("collector:\n  gpu: false\nblacklist: /nowhere\n", "cannot read /nowhere"),
                               ("collector: [\n", "agent.yml")):
            config.write_text(text)
            answer = self.reload(agent)
            self.assertEqual(answer.status, 500)
            self.assertIn(sentence, answer.text)
            self.assertIn('sonde_collector_success{collector="gpu"}', agent.metrics().text)

    def test_a_signal_does_the_same(self):
        config = self.write("agent.yml", "timer: 1\n")
        agent = self.agent(f"--config.file={config}")
        os.kill(agent.process.pid, signal.SIGHUP)
        wait_until(lambda: "configuration reloaded" in agent.log(), "the reload")


if __name__ == "__main__":
    import tap
    tap.main()
