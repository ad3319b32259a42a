#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""What the profile plugin has left on a Pushgateway goes, and nothing else: `sonde admin sweep-pushgateway` and the agent
against the real Pushgateways of Debian's releases; SONDE_SUITES names them, as for test_sandbox.py."""
import base64
import http.server
import os
import signal
import socket
import subprocess
import threading
import time
import unittest

from fakejobs import FaultTest
from pushgateway import Pushgateway
from slurm import SUITES
from sonde import DEADLINE, SONDE, FakeCommands, http_get, job, own_host, wait_until
from capabilities import need

METRICS = "# TYPE slurm_profile_task_cpu_seconds_total counter\nslurm_profile_task_cpu_seconds_total{%s} 5\nRSS{%s} 3\n"
LABELS = 'slurm_job="1",task="0"'
PRIVATE = FakeCommands.SCONTROL.replace("PrivateData = none", "PrivateData = jobs").replace(
    "SLURM_VERSION", "SlurmUser = slurm(64030)\\\\nSLURM_VERSION")


def plugin_metrics(cluster=None):
    labels = LABELS + (f',cluster="{cluster}"' if cluster else "")
    return METRICS % (labels, labels)


def label(name, value):
    """As it stands in the path of a group."""
    if value and value.replace("-", "").replace("_", "").isalnum() and value.isascii():
        return f"/{name}/{value}"
    return f"/{name}@base64/" + (base64.urlsafe_b64encode(value.encode()).decode() or "=")


def push(gateway, text=None, **labels):
    path = "".join(label(*item) for item in labels.items())
    answer = http_get(f"{gateway.url}/metrics{path}", method="PUT", data=(text or plugin_metrics()).encode())
    assert answer.status == 200, answer.body


def groups(gateway):
    """(job, instance, step or None) of all that are there."""
    families = http_get(f"{gateway.url}/metrics").families()
    found = [dict(labels) for labels in families.get("push_time_seconds", {})]
    return {(group.get("job"), group.get("instance"), group.get("step")) for group in found}


def last_push(url):
    """When the newest group was pushed, by the gateway's clock; now, if it has none."""
    try:
        times = http_get(f"{url}/metrics").families().get("push_time_seconds", {}).values()
    except (OSError, AssertionError):
        times = ()  # it is none, or away
    return max(times, default=time.time())


class AdminTest(unittest.TestCase):
    def commands(self, **scripts):
        return self.enterContext(FakeCommands(**scripts))

    def sweep(self, url, *flags, commands=None, later=120, now=None, **arguments):
        """As if so many seconds had passed since the last push: what was pushed just now stays."""
        commands = commands or self.commands()
        environment = dict(os.environ, PATH=f"{commands.path}:{os.environ['PATH']}",
                           SONDE_CLOCK=str(int(now or last_push(url)) + later))
        return subprocess.run([SONDE, "admin", "sweep-pushgateway", "--source=cli", *flags, url],
                              capture_output=True, text=True, env=environment, timeout=DEADLINE, **arguments)


class AdminWithPushgateway:
    """The tests; a class for each suite is made below."""

    suite = None

    def setUp(self):
        self.gateway = Pushgateway(self.suite)
        self.addCleanup(self.gateway.end)

    def expect(self, done, status=0, errors=""):
        self.assertEqual((done.returncode, done.stderr), (status, errors), done.stdout)
        return done.stdout.splitlines()

    def test_groups_of_ended_jobs_go_and_all_others_stay(self):
        states = {100: "RUNNING", 101: "COMPLETING", 102: "SUSPENDED", 103: "CONFIGURING"}
        ended = {104: "PENDING", 110: "COMPLETED", 111: "FAILED", 112: "TIMEOUT", 113: "CANCELLED", 114: "NODE_FAIL"}
        for number in (*states, *ended, 120):
            push(self.gateway, job=str(number), instance="c1", step="batch")
        push(self.gateway, "RSS 1\n", job="120", instance="c2")
        push(self.gateway, "RSS 1\n", job="100", instance="c2")
        strangers = {("backup", "c1", None): "RSS 1\n", ("121", "c1", None): "backup_size_bytes 1\n",
                     ("122", "c1", "0"): "rss 1\n", ("123", "c1", None): plugin_metrics().partition("RSS")[0],
                     ("0124", "c1", "batch"): plugin_metrics(), ("125", "", "batch"): plugin_metrics(),
                     ("126", "c1", "a/b"): plugin_metrics(), ("127", "n" * 10000, "0"): plugin_metrics(),
                     ("128", "c1", 'a"\n'): plugin_metrics(), ("129", "c1", "0"): "labels 1\nRSS 1\n",
                     ("130/../131", "c1", "0"): plugin_metrics()}
        for (name, instance, step), text in strangers.items():
            push(self.gateway, text, job=name, instance=instance, **({"step": step} if step else {}))
        push(self.gateway, job="132", instance="c1", step="0", more="x")
        all_jobs = "".join(job(JobID=str(number), State=state) for number, state in {**states, **ended}.items())
        lines = self.expect(self.sweep(self.gateway.url, commands=self.commands(squeue=f"answer '{all_jobs}'")))
        gone = {*ended, 120}
        self.assertEqual({line.partition(" on ")[0] for line in lines[:-1]},
                         {f"deleted job {number} step batch" for number in gone} | {"deleted job 120"})
        self.assertRegex(lines[-1], r"^8 of 13 groups of the profile plugin deleted; 5 stay for jobs that Slurm has, 0 ")
        self.assertEqual(groups(self.gateway), {(str(number), "c1", "batch") for number in states} |
                         {("100", "c2", None), ("132", "c1", "0")} | set(strangers))

    def test_a_node_may_have_any_name(self):
        names = ("a/b", "/", ".", "..", "a b%2F+?#", 'ü\\"', "a\nb", "\x1b[2J", "n" * 255)
        for name in names:
            push(self.gateway, job="5", instance=name, step="0")
        done = self.sweep(self.gateway.url)
        self.assertEqual(len(self.expect(done)), len(names) + 1)
        self.assertNotIn("\x1b", done.stdout)
        self.assertEqual(groups(self.gateway), set())

    def test_a_dry_run_deletes_nothing(self):
        push(self.gateway, job="5", instance="c1", step="0")
        lines = self.expect(self.sweep(self.gateway.url, "--dry-run"))
        self.assertRegex(lines[0], r"^would delete job 5 step 0 on c1, last pushed 1(19|20) s ago$")
        self.assertIn("1 of 1 groups of the profile plugin would be deleted", lines[1])
        self.assertEqual(groups(self.gateway), {("5", "c1", "0")})

    def test_what_was_just_pushed_stays(self):
        push(self.gateway, job="5", instance="c1", step="0")
        lines = self.expect(self.sweep(self.gateway.url, later=0))
        self.assertIn("1 that were pushed in the last minute", lines[0])
        self.assertEqual(groups(self.gateway), {("5", "c1", "0")})

    def test_groups_of_other_clusters_stay(self):
        push(self.gateway, plugin_metrics("fake"), job="5", instance="c1", step="0")
        push(self.gateway, plugin_metrics("other"), job="6", instance="c1", step="0")
        push(self.gateway, plugin_metrics(), job="7", instance="c1", step="0")
        done = self.sweep(self.gateway.url, "--cluster=other")
        self.assertEqual(done.returncode, 1)
        self.assertIn('nothing was deleted: the Slurm that answers is "fake"', done.stderr)
        lines = self.expect(self.sweep(self.gateway.url, "--cluster=Fake"))
        self.assertIn("1 of 1 groups", lines[-1])
        self.assertEqual(groups(self.gateway), {("6", "c1", "0"), ("7", "c1", "0")})
        lines = self.expect(self.sweep(self.gateway.url))
        self.assertIn("1 of other clusters", lines[-1])
        self.assertEqual(groups(self.gateway), {("6", "c1", "0")})

    def test_without_groups_slurm_is_not_asked(self):
        push(self.gateway, "a 1\n", job="backup", instance="c1")
        lines = self.expect(self.sweep(self.gateway.url, commands=self.commands(squeue="exit 1", scontrol="exit 1")))
        self.assertEqual(len(lines), 1)
        self.assertIn("0 of 0 groups", lines[0])

    def test_nothing_goes_unless_slurm_tells_all(self):
        push(self.gateway, job="5", instance="c1", step="0")
        cases = {"cannot connect": ("5m", dict(squeue="echo 'squeue: error: cannot connect' >&2; exit 1")),
                 "sonde admin doctor": ("5m", dict(scontrol="exit 1")),
                 "or is garbage": ("5m", dict(squeue="answer 'x~y\\n'")),
                 "--slurm.timeout": ("500ms", dict(squeue="exec sleep infinity"))}
        for words, (timeout, scripts) in cases.items():
            with self.subTest(words):
                done = self.sweep(self.gateway.url, f"--slurm.timeout={timeout}", commands=self.commands(**scripts))
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn("nothing was deleted", done.stderr)
                self.assertIn(words, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1)
        self.assertEqual(groups(self.gateway), {("5", "c1", "0")})

    def test_nothing_goes_where_jobs_are_hidden(self):
        need("root")
        push(self.gateway, job="5", instance="c1", step="0")
        commands = self.commands(scontrol=PRIVATE)
        os.chmod(commands.path, 0o755)
        done = self.sweep(self.gateway.url, commands=commands, user=65534)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("PrivateData hides the jobs of others from user 65534", done.stderr)
        self.assertEqual(groups(self.gateway), {("5", "c1", "0")})
        self.expect(self.sweep(self.gateway.url, commands=commands))  # root sees all
        self.assertEqual(groups(self.gateway), set())

    def test_many_groups_go_at_once(self):
        for number in range(1, 301):
            push(self.gateway, job=str(number), instance="c1", step="0")
        lines = self.expect(self.sweep(self.gateway.url))
        self.assertEqual(len(lines), 301)
        self.assertEqual(groups(self.gateway), set())

    def test_a_pushgateway_that_hangs_is_given_up(self):
        push(self.gateway, job="5", instance="c1", step="0")
        now = last_push(self.gateway.url)
        self.gateway.pause()
        done = self.sweep(self.gateway.url, "--push.timeout=500ms", now=now)
        self.assertEqual(done.returncode, 1)
        self.gateway.resume()
        self.assertEqual(groups(self.gateway), {("5", "c1", "0")})


for suite in SUITES:
    globals()[f"Admin_{suite}"] = type(f"Admin_{suite}", (AdminWithPushgateway, AdminTest), {"suite": suite})


class Answering:
    """A server that gives one answer to every GET."""

    def __init__(self, status, body):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def do_DELETE(self):
                raise AssertionError("it must not delete anything here")

            def log_message(self, *_):
                pass
        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever)

    def __enter__(self):
        self.thread.start()
        return self.url

    def __exit__(self, *_):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


class AdminWithoutPushgateway(AdminTest):
    def test_what_is_no_pushgateway_is_told(self):
        cases = {b"<html>": "is not a Pushgateway's", b"": "is not a Pushgateway's", b"{}": "is not a Pushgateway's",
                 b'{"status":"success","data":[{"RSS"': "is not a Pushgateway's", b"[" * 100: "nested deeper"}
        for body, words in cases.items():
            with Answering(200, body) as url:
                done = self.sweep(url)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(words, done.stderr)
        with Answering(404, b"404 page not found") as url:
            self.assertIn("status 404; is the path right, and a Pushgateway there?", self.sweep(url).stderr)

    def test_one_that_is_away_is_told(self):
        host = own_host()
        done = self.sweep(f"http://{host}:9091")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn(host, done.stderr)

    def test_mistakes_are_told(self):
        cases = {("ftp://host",): "http", ("http://host", "--push.timeout=0"): "--push.timeout",
                 ("http://host", "--push.password-file=/nonexistent"): "no user in the URL",
                 ("http://host", "http://other"): "name one Pushgateway",
                 ("http://host", "--demo", "--source="): "simulated", ("http://host", "--dryrun"): "--dry-run"}
        for (url, *flags), words in cases.items():
            with self.subTest(flags):
                done = self.sweep(url, *flags)
                self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
                self.assertIn(words, done.stderr)

    def test_a_signal_ends_it(self):
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        listener.settimeout(DEADLINE)
        process = subprocess.Popen([SONDE, "admin", "sweep-pushgateway", "--source=cli",
                                    f"http://127.0.0.1:{listener.getsockname()[1]}"], stderr=subprocess.PIPE)
        self.addCleanup(process.stderr.close)
        listener.accept()[0].detach()  # stays open, and says nothing
        process.send_signal(signal.SIGTERM)
        self.assertEqual(process.wait(DEADLINE), 1)


class OfAgent(FaultTest):
    def setUp(self):
        super().setUp()
        self.gateway = Pushgateway()
        self.addCleanup(self.gateway.end)

    def push(self, number, step, instance="host"):
        push(self.gateway, job=str(number), instance=instance, step=step)

    def wait_groups(self, *expected):
        """The agent goes round every ten seconds."""
        self.wait_passing(lambda: groups(self.gateway) == set(expected), f"the groups are {expected}", 10)

    def start_agent(self, timeout=DEADLINE):
        return self.agent(f"--profile.pushgateway={self.gateway.url}", f"--push.timeout={timeout}s")

    def test_the_group_of_a_killed_slurmstepd_goes(self):
        steps = [self.node.job(71).step(name) for name in ("batch", "0", "1")]
        agent = self.start_agent()
        self.wait_job(agent, 71)
        for step in steps:
            step.start("name", "x").wait_said("is called so")
            self.push(71, step.name)
        self.push(72, "batch", "elsewhere")
        push(self.gateway, "a 1\n", job="71", instance="host")
        steps[1].stepd.kill()
        steps[1].stepd.wait()
        self.wait_groups(("71", "host", "batch"), ("71", "host", "1"), ("72", "elsewhere", "batch"), ("71", "host", None))
        steps[0].end_stepd()
        self.wait_groups(("71", "host", "1"), ("72", "elsewhere", "batch"), ("71", "host", None))
        # Two, and again what a Pushgateway has accepted to delete and not deleted when the next round comes. A group is gone
        # before the agent has read the reply.
        wait_until(lambda: agent.metrics().value("sonde_agent_profile_swept_groups_total") >= 2, "both are counted")
        self.assertEqual(agent.metrics().value("sonde_agent_profile_sweep_failures_total"), 0)

    def test_what_was_left_before_the_agent_started_goes(self):
        self.node.job(73).step("batch").start("name", "x").wait_said("is called so")
        for number, step, instance in ((73, "batch", "host"), (73, "0", "host"), (74, "batch", "host"), (74, "0", "other")):
            self.push(number, step, instance)
        push(self.gateway, "CPUTime 1\n", job="74", instance="host")
        push(self.gateway, "CPUTime 1\n", job="73", instance="host")
        push(self.gateway, "a 1\n", job="75", instance="host")
        agent = self.start_agent()
        self.wait_groups(("73", "host", "batch"), ("73", "host", None), ("74", "other", "0"), ("75", "host", None))
        agent.wait_log("deleted what a step had left")

    def test_a_pushgateway_that_was_away_is_swept_when_it_is_back(self):
        step = self.node.job(76).step("batch")
        agent = self.start_agent(timeout=1)
        self.wait_job(agent, 76)
        self.push(76, "batch")
        self.gateway.pause()
        step.end_stepd()
        self.wait_passing(lambda: agent.metrics().value("sonde_agent_profile_sweep_failures_total") > 0, "a failure is counted",
                          10)
        self.gateway.resume()
        self.wait_groups()
        self.wait_passing(lambda: "is deleted again" in agent.log(), "that it works is told", 10)


if __name__ == "__main__":
    import tap
    tap.main()
