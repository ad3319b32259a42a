#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The agent's socket for Slurm's profile plugin: what is told there is shown, goes when the step does, and nothing that is
sent there does any harm."""
import os
import pathlib
import random
import socket
import stat
import subprocess
import sys
import tempfile
import unittest

import unit
from clock import Clock
from fakejobs import NAME, FaultTest
from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser as openmetrics_parser
from pushgateway import find_program
from slurm import SUITES
from sonde import BUILD, DEADLINE, SONDE, Agent, tables, wait_until
from capabilities import need

STRANGER = 64998
OPENMETRICS = "application/openmetrics-text; version=1.0.0"
CPU = "slurm_profile_task_cpu_seconds_total"
RSS = "slurm_profile_task_resident_memory_bytes"
POWER = "slurm_profile_node_power_watts"
RECEIVED = "slurm_profile_node_network_receive_bytes_total"


def message(job, step="batch", node="c1", every=3600, labels=None, **datasets):
    """`datasets`: task_0={"CPUTime": 1}, energy={("Power", "CPU"): 5}"""
    lines = ["sonde-profile 1", f"step {job} {step} {node}", *(f"label {k} {v}" for k, v in (labels or {}).items()),
             f"every {every}"]
    for dataset, values in datasets.items():
        lines.append("dataset " + dataset.replace("_", " "))
        for name, value in values.items():
            name, *sensor = name if isinstance(name, tuple) else (name,)
            lines.append(" ".join([name, str(value), *sensor]))
    return "\n".join(lines) + "\n"


def farewell(job, step="batch", node="c1"):
    return f"sonde-profile 1\nstep {job} {step} {node}\nend\n"


def all_metrics():
    """dataset → names"""
    found = {}
    for row in tables()["profile_metrics"]:
        dataset = "task_0" if row["dataset"] == "task" else row["dataset"]
        found.setdefault(dataset, []).append(row["name"])
    return found


class Told:
    """An agent with a socket of its own."""

    def __init__(self, test, *flags, start=Agent, owner=-1, **arguments):
        need("root")  # whom the agent listens to
        self.directory = test.enterContext(tempfile.TemporaryDirectory())
        os.chmod(self.directory, 0o755)
        os.chown(self.directory, owner, owner)
        self.path = f"{self.directory}/profile.sock"
        self.agent = test.enterContext(start(f"--profile.socket={self.path}", *flags, **arguments))
        self.socket = test.enterContext(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        self.socket.settimeout(DEADLINE)
        self.socket.connect(self.path)

    def send(self, text):
        self.socket.send(text if isinstance(text, bytes) else text.encode())

    def families(self):
        """family → {labels: value} of what the plugin told."""
        return {name: {tuple(sorted(labels)): value for labels, value in samples.items()}
                for name, samples in self.agent.metrics().families().items()
                if name.startswith("slurm_profile_") or name[0].isupper()}

    def self_told(self, name):
        return self.agent.metrics().value(f"sonde_agent_profile_{name}")

    def wait(self, condition, what):
        """The families, as soon as that is true of them."""
        return wait_until(lambda: (families := self.families(), condition(families))[1] and families, what)


def labels(**pairs):
    return tuple(sorted(pairs.items()))


class Shown(unittest.TestCase):
    def test_values_are_shown_by_both_names_until_newer_ones_come(self):
        told = Told(self)
        extra = {"user": "alice", "account": "phys ics", "partition": "cpu", "cluster": "big"}
        told.send(message(7, "0", "c1", labels=extra,
                          task_3={CPU: 1.5, RSS: 1 << 20, "CPUTime": 0.5, "RSS": 1024},
                          energy={(POWER, "CPU"): 250, (POWER, "DRAM"): 20, "Power": 270},
                          network={RECEIVED: 1e6, "InMB": 0.25}))
        families = told.wait(lambda families: CPU in families, "the values")
        new = {"slurm_job": "7", "step": "0", "instance": "c1", **extra}
        old = {"job": "7", "instance": "c1", "step": "0"}
        self.assertEqual(families[CPU], {labels(**new, task="3"): 1.5})
        self.assertEqual(families[RSS], {labels(**new, task="3"): 1 << 20})
        self.assertEqual(families[POWER], {labels(**new, sensor="CPU"): 250, labels(**new, sensor="DRAM"): 20})
        self.assertEqual(families[RECEIVED], {labels(**new): 1e6})
        self.assertEqual(families["CPUTime"], {labels(**old, task="3"): 0.5})
        self.assertEqual(families["RSS"], {labels(**old, task="3"): 1024})
        self.assertEqual(families["Power"], {labels(**old): 270})
        self.assertEqual(families["InMB"], {labels(**old): 0.25})
        self.assertEqual(told.families(), families)
        told.send(message(7, "0", "c1", labels=extra, task_3={CPU: 2.5}))
        families = told.wait(lambda families: families[CPU] == {labels(**new, task="3"): 2.5}, "the next values")
        self.assertEqual(families[RSS], {labels(**new, task="3"): 1 << 20})

    def test_labels_that_are_not_told_are_empty(self):
        told = Told(self)
        told.send(message(7, task_0={CPU: 1}))
        families = told.wait(lambda families: CPU in families, "the value")
        self.assertEqual(families[CPU], {labels(slurm_job="7", step="batch", task="0", instance="c1", user="", account="",
                                                partition="", cluster=""): 1})

    def test_two_nodes_and_four_steps_with_four_tasks_each_are_all_visible(self):
        told = Told(self)
        expected = {(node, str(step), str(task)): 1000 * int(node[1]) + 10 * step + task
                    for node in ("c1", "c2") for step in range(4) for task in range(4)}
        for node in ("c1", "c2"):
            for step in range(4):
                told.send(message(9, step, node, **{f"task_{task}": {
                    CPU: expected[node, str(step), str(task)], "CPUTime": expected[node, str(step), str(task)]}
                    for task in range(4)}))
        families = told.wait(lambda families: len(families.get(CPU, ())) == 32, "all tasks")
        for name in (CPU, "CPUTime"):
            shown = {(pairs["instance"], pairs["step"], pairs["task"]): value
                     for pairs, value in ((dict(key), value) for key, value in families[name].items())}
            self.assertEqual(shown, expected)
        self.assertEqual(told.self_told("steps"), 8)

    def test_somebody_elses_parsers_take_it(self):
        told = Told(self)
        told.send(message(7, task_0={CPU: 1.5, RSS: 3, "CPUTime": 0.5}, energy={(POWER, 'a"b\\'): 1}))
        told.wait(lambda families: POWER in families, "the values")
        text = {family.name: family for family in
                text_parser.text_string_to_metric_families(told.agent.metrics().text)}
        answer = told.agent.metrics(Accept=OPENMETRICS)
        openmetrics = {family.name: family for family in
                       openmetrics_parser.text_string_to_metric_families(answer.text)}
        self.assertEqual((text["CPUTime"].type, openmetrics["CPUTime"].type), ("unknown", "unknown"))
        self.assertEqual(openmetrics[CPU.removesuffix("_total")].type, "counter")
        self.assertEqual(openmetrics[POWER].samples[0].labels["sensor"], 'a"b\\')

    def test_promtool_finds_nothing_but_the_old_names(self):
        promtool = find_program(SUITES[0]).with_name("promtool")
        told = Told(self)
        told.send(message(7, **{kind: dict.fromkeys(names, 1) for kind, names in all_metrics().items()}))
        told.wait(lambda families: len(families) == len(sum(all_metrics().values(), [])), "all of them")
        text = told.agent.get("/metrics?collect[]=profile").text  # whatever jobs there are on this machine
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True)
        known = pathlib.Path(__file__).with_name("promtool_profile.txt").read_text().splitlines()
        self.assertEqual(sorted({line for line in (done.stdout + done.stderr).splitlines() if line.strip()}), known)

    def test_it_is_not_pushed(self):
        """The group of a Pushgateway has a job and an instance of its own."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            told = Told(self, "-t", "1", f"--push.url=http://127.0.0.1:{server.getsockname()[1]}",
                        f"--push.timeout={DEADLINE}s")
            told.send(message(7, task_0={CPU: 1.5, "CPUTime": 0.5}))
            told.wait(lambda families: CPU in families, "the value")
            server.settimeout(DEADLINE)
            for _ in range(2):
                connection, _ = server.accept()
                with connection:
                    connection.settimeout(DEADLINE)
                    request = b""
                    while b"\r\n\r\n" not in request:
                        request += connection.recv(65536)
                    head, _, body = request.partition(b"\r\n\r\n")
                    n = int(next(line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
                            .split(b":")[1])
                    while len(body) < n:
                        body += connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                self.assertNotIn(CPU.encode(), body)
                self.assertNotIn(b"CPUTime", body)


class Ends(unittest.TestCase):
    def setUp(self):
        self.clock = self.enterContext(Clock())

    def told(self, *flags):
        return Told(self, "-t", "1h", *flags, env=self.clock.env)

    def pass_by(self, told, seconds, value):
        """So much time, and another value of job 8, which is shown after all that came with the time."""
        self.clock.advance(seconds)
        told.send(message(8, task_0={CPU: value}))
        return told.wait(lambda families: value in families.get(CPU, {}).values(), "a newer value")

    @staticmethod
    def jobs(families):
        return {dict(key)["slurm_job"] for key in families[CPU]}

    def test_counters_linger_after_the_end_and_what_is_of_a_moment_does_not(self):
        told = self.told("--job.linger=1h")
        told.send(message(7, task_0={CPU: 1.5, RSS: 3, "CPUTime": 0.5}))
        told.send(message(8, task_0={CPU: 2.5}))
        told.wait(lambda families: RSS in families and len(families[CPU]) == 2, "the values")
        told.send(farewell(7))
        families = told.wait(lambda families: RSS not in families, "the gauge goes")
        self.assertEqual(self.jobs(families), {"7", "8"})
        self.assertNotIn("CPUTime", families)
        self.assertEqual(self.jobs(self.pass_by(told, 1800, 3.5)), {"7", "8"})
        self.assertEqual(self.jobs(self.pass_by(told, 1800, 4.5)), {"8"})

    def test_a_step_that_is_not_heard_of_any_more_goes(self):
        told = self.told()
        told.send(message(7, every=600, task_0={CPU: 1.5}))
        told.send(message(8, task_0={CPU: 2.5}))
        told.wait(lambda families: len(families.get(CPU, ())) == 2, "the values")
        self.assertEqual(self.jobs(self.pass_by(told, 1200, 3.5)), {"7", "8"})
        self.assertEqual(self.jobs(self.pass_by(told, 605, 4.5)), {"8"})
        self.assertEqual(told.self_told("steps"), 1)

    def test_it_all_goes_when_the_agent_does_not_hear_it_again_after_a_restart(self):
        told = Told(self)
        told.send(message(7, task_0={CPU: 1.5}))
        told.wait(lambda families: CPU in families, "the value")
        told.agent.stop()
        self.assertFalse(os.path.exists(told.path))
        with Agent(f"--profile.socket={told.path}") as again:
            wait_until(lambda: again.get("/-/ready").status == 200, "a first sample")
            self.assertNotIn(CPU, again.metrics().text)


class OfJobs(FaultTest):
    """Beside jobs that the agent sees."""

    def told(self, *flags):
        return Told(self, *flags, start=self.agent)

    def test_what_a_killed_slurmstepd_told_goes_with_it(self):
        told = self.told("--job.linger=24h")
        job = self.node.job(700)
        first, second = job.step("0"), job.step("1")
        first.start("name", "first")
        second.start("name", "second")
        self.wait_job(told.agent, 700, "sonde_job_processes", lambda samples: samples[()] == 2)
        told.send(message(700, "0", NAME, task_0={CPU: 1}))
        told.send(message(700, "1", NAME, task_0={CPU: 2}))
        told.wait(lambda families: len(families.get(CPU, ())) == 2, "both")
        first.stepd.kill()
        families = told.wait(lambda families: len(families[CPU]) == 1, "one goes")
        self.assertEqual([dict(key)["step"] for key in families[CPU]], ["1"])
        told.send(farewell(700, "1", NAME))
        second.stepd.kill()
        wait_until(lambda: "sonde_job_processes" not in told.agent.job(700), "the job's end")
        self.assertEqual(len(told.families()[CPU]), 1)

    def test_jobs_of_users_who_are_not_to_be_looked_at_are_not_shown(self):
        skipped, shown = self.node.job(700, uid=64996), self.node.job(701)
        skipped.start("name", "hidden")
        shown.start("name", "shown")
        blacklist = self.node.work / "blacklist"
        blacklist.write_text("64996\n")
        told = self.told(f"--blacklist={blacklist}")
        for job in (700, 701, 702):  # of the last one the agent knows nothing
            told.send(message(job, node=NAME, task_0={CPU: 1}))
        told.wait(lambda families: CPU in families, "the other's")
        self.wait_ticks(told.agent, 2)
        self.assertEqual([dict(key)["slurm_job"] for key in told.families()[CPU]], ["701"])
        blacklist.write_text("")
        told.agent.get("/-/reload", method="POST", data=b"")
        told.wait(lambda families: len(families[CPU]) == 3, "all of them")


def is_sanitized():
    """Which takes memory of its own."""
    return b"__asan_init" in (BUILD / "src/sonde-agent").read_bytes()


class Hostile(unittest.TestCase):
    def test_garbage_is_counted_and_does_no_harm(self):
        told = Told(self)
        for text in (b"", b"\0" * 16384, b"hello", b"sonde-profile 1\nstep 0 0 c1\n", os.urandom(1000),
                     message(7, task_0={CPU: 1}).replace("batch", "ba\x1btch")):
            told.send(text)
        told.send("sonde-profile 2\nstep 7 0 c1\n")
        told.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        told.send(message(7, task_0={CPU: 1}) + "\n" * 20000)
        told.send(message(8, task_0={CPU: 1, "Unheard": 3, RSS: "many"}))
        families = told.wait(lambda families: CPU in families, "the good one")
        self.assertEqual([dict(key)["slurm_job"] for key in families[CPU]], ["8"])
        self.assertNotIn(RSS, families)
        self.assertEqual(told.self_told('refused_total{reason="garbled"}'), 7)
        self.assertEqual(told.self_told('refused_total{reason="version"}'), 1)
        self.assertEqual(told.self_told("messages_total"), 9)

    def test_more_messages_than_there_is_room_for_leave_memory_bounded_and_scrapes_answered(self):
        told = Told(self)
        n = 24000  # a quarter of them fills 4,096 steps, another one 65,536 values
        rng = random.Random(6)
        wait_until(lambda: told.agent.get("/-/ready").status == 200, "a first sample")

        def hostile(i):
            kind = i % 4
            if kind == 0:
                return message(1 + i, task_0={CPU: i, RSS: i, "CPUTime": i})
            if kind == 1:
                return message(1, "s" * 23, "n" * 255, labels={"account": "a" * 127},
                               **{f"task_{rng.randrange(1 << 32)}": {CPU: i} for _ in range(20)})
            if kind == 2:
                return rng.randbytes(rng.randrange(200))
            text = bytearray(message(7, energy={(POWER, "x" * rng.randrange(1, 40)): i}).encode())
            text[rng.randrange(len(text))] = rng.randrange(256)
            return bytes(text)

        for i in range(n):
            told.send(hostile(i))
            if i % 6000 == 0:
                told.agent.metrics(Accept_Encoding="gzip")
        told.send(message(7, task_0={CPU: 1}))
        answer = wait_until(lambda: (answer := told.agent.metrics(Accept_Encoding="gzip")).value(
            "sonde_agent_profile_messages_total") == n + 1 and answer, "all were read")
        self.assertLessEqual(answer.value("sonde_agent_profile_steps"), 4096)
        self.assertLessEqual(answer.value("sonde_agent_profile_values"), 65536)
        self.assertGreater(answer.value('sonde_agent_profile_refused_total{reason="garbled"}'), 0.2 * n)
        self.assertGreater(answer.value('sonde_agent_profile_refused_total{reason="full"}'), 0.1 * n)
        status = pathlib.Path(f"/proc/{told.agent.process.pid}/status").read_text()
        resident = int(status.split("VmRSS:")[1].split()[0])
        print(f"# resident {resident // 1024} MB, {len(answer.body) >> 10} KB of text")
        self.assertLess(resident, (512 if is_sanitized() else 64) << 10)

    def test_other_users_are_not_heard(self):
        need("root")
        told = Told(self, "--slurmd.user=64997")
        self.assertEqual(stat.S_IMODE(os.stat(told.path).st_mode) & ~0o660, 0)
        send = "import socket, sys; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM); s.connect(sys.argv[1]); " \
               "s.send(sys.argv[2].encode())"

        def send_as(uid, text):
            return subprocess.run(["setpriv", f"--reuid={uid}", "--clear-groups", "--", sys.executable, "-c", send,
                                   told.path, text], capture_output=True, text=True)
        self.assertIn("PermissionError", send_as(STRANGER, message(7, task_0={CPU: 1})).stderr)
        os.chmod(told.path, 0o666)  # even so
        self.assertEqual(send_as(STRANGER, message(7, task_0={CPU: 1})).returncode, 0)
        self.assertEqual(send_as(64997, message(8, task_0={CPU: 1})).returncode, 0)
        families = told.wait(lambda families: CPU in families, "slurmd's user is heard")
        self.assertEqual([dict(key)["slurm_job"] for key in families[CPU]], ["8"])
        self.assertEqual(told.self_told('refused_total{reason="sender"}'), 1)


class Unit(unittest.TestCase):
    """As systemd would start it."""

    def test_it_makes_the_directory_of_the_socket(self):
        shown = subprocess.run([SONDE, "agent", "--help"], capture_output=True, text=True).stdout
        self.assertIn(f"/run/{unit.settings()['RuntimeDirectory'][-1]}/profile.sock", shown)

    def test_without_root_it_hears_root(self):
        need("root")
        told = Told(self, starter=unit.prefix(), owner=unit.DYNAMIC_UID)
        self.assertEqual(os.stat(told.path).st_uid, unit.DYNAMIC_UID)
        told.send(message(7, task_0={CPU: 1}))
        told.wait(lambda families: CPU in families, "it is heard")


class Start(unittest.TestCase):
    def ready(self, *flags):
        agent = self.enterContext(Agent(*flags))
        wait_until(lambda: agent.get("/-/ready").status == 200, "a first sample")
        return agent

    def test_without_its_directory_the_agent_says_so_once_and_goes_on(self):
        agent = self.ready("--profile.socket=/nonexistent/profile.sock")
        agent.wait_log("the profile plugin is not heard")
        self.assertEqual(agent.log().count("the profile plugin is not heard"), 1)
        agent.wait_log("level=info")
        self.assertNotIn("sonde_agent_profile", agent.metrics().text)

    def test_an_empty_path_is_none(self):
        agent = self.ready("--profile.socket=")
        self.assertNotIn("profile plugin", agent.log())
        self.assertNotIn("sonde_agent_profile", agent.metrics().text)

    def test_a_second_agent_leaves_the_first_ones_socket_alone(self):
        told = Told(self)
        second = self.ready(f"--profile.socket={told.path}")
        second.wait_log("level=warn")
        second.stop()
        told.send(message(7, task_0={CPU: 1}))
        told.wait(lambda families: CPU in families, "the first hears")

    def test_the_socket_of_one_that_was_killed_is_replaced(self):
        told = Told(self)
        told.agent.process.kill()
        told.agent.process.wait()
        self.assertTrue(os.path.exists(told.path))
        agent = self.ready(f"--profile.socket={told.path}")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.connect(told.path)
            sender.send(message(7, task_0={CPU: 1}).encode())
        wait_until(lambda: CPU in agent.metrics().text, "it is heard")


if __name__ == "__main__":
    import tap
    tap.main()
