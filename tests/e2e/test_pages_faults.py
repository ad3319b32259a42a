#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Pages of `sonde up` in trouble: crowds, clients that dawdle, a store that is damaged, a Prometheus that hangs. What does not
need what is broken is served as ever, and what does says so."""
import asyncio
import collections
import concurrent.futures
import contextlib
import os
import pathlib
import re
import resource
import signal
import socket
import tempfile
import threading
import unittest
import urllib.parse

from clock import Clock
from pages import Up
from sonde import DEADLINE, own_host, wait_until
from capabilities import need
from test_up import children, command_of, state_of, stopped

CROWD = 2000
REPORTS = 2  # that are made at once


class Case(unittest.TestCase):
    def up(self, *flags, headers=None, **arguments):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        up = self.enterContext(Up(self.directory, *flags, **arguments))
        wait_until(lambda: up.get("/jobs", headers=headers).status == 200, "pages are there")
        return up

    @staticmethod
    def job_in(up, path, headers=None):
        """The address of a job that is listed there."""
        page = wait_until(lambda: (answer := up.get(path, headers=headers)).status == 200 and "/job/" in answer.text and answer, f"jobs are in {path}")
        return re.search(r'href="(/job/[^"]+)"', page.text)[1].replace("&amp;", "&")


class Crowds(Case):
    """Whose server has a clock that stands: however slow the machine is, no connection is closed because it lasts too long."""

    def setUp(self):
        self.clock = self.enterContext(Clock(stands=1800000000))

    async def ask(self, port, path):
        """The status of one client's answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()
            answer = await reader.read()
        finally:
            writer.close()
        head, _, body = answer.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        self.assertEqual(int(length[1]), len(body), "an answer is whole")
        return int(head.split()[1])

    def test_two_thousand_clients_at_once_are_answered_or_told_to_come_back(self):
        need("many-files")
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, CROWD + 200), hard))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        up = self.up("--demo", env=self.clock.env)

        async def crowd():
            paths = ("/", "/jobs", "/nodes", "/partitions", "/api/v1/overview")
            asking = [self.ask(up.port, paths[i % len(paths)]) for i in range(CROWD)]
            return await asyncio.wait_for(asyncio.gather(*asking), DEADLINE)
        statuses = collections.Counter(asyncio.run(crowd()))
        print(f"# {dict(statuses)}")
        self.assertLessEqual(set(statuses), {200, 503})
        self.assertGreater(statuses[200], 300)  # of one address, a third of the queue waits: 342
        wait_until(lambda: up.get("/").status == 200, "then it is as before")

    def test_clients_that_dawdle_hold_up_nobody(self):
        up = self.up("--demo", env=self.clock.env)

        def dawdle(is_whole):
            dawdler = self.enterContext(socket.create_connection(("127.0.0.1", up.port)))
            dawdler.sendall(b"GET /nodes?view=table&limit=1000 HTTP/1.1\r\nHost: localhost\r\n" + b"\r\n" * is_whole)
            return dawdler

        def is_kept(dawdler):
            try:
                return bool(dawdler.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
            except BlockingIOError:
                return True

        # half of them never end their question, half never read the answer
        dawdlers = [dawdle(is_whole=i % 2) for i in range(100)]
        self.assertEqual([up.get(path).status for path in ("/", "/jobs")], [200, 200])
        self.assertTrue(all(map(is_kept, dawdlers[::2])), "all are there that came before")

    def test_who_asks_for_much_keeps_nobody_else_waiting(self):
        anna, bob = {"X-Remote-User": "anna"}, {"X-Remote-User": "bob"}
        up = self.up("--demo", "--web.auth=proxy", "--web.proxy-from=127.0.0.1", "--web.staff=anna", headers=anna)
        report = self.job_in(up, "/jobs?kept=1&state=RUNNING", headers=anna).replace("/job/", "/pdf/")
        self.assertEqual(up.get(report, headers=anna).status, 200)

        def ask():
            asker = self.enterContext(socket.create_connection(("127.0.0.1", up.port)))
            asker.sendall(f"GET {report} HTTP/1.1\r\nHost: localhost\r\nX-Remote-User: anna\r\n\r\n".encode())

        def are_stopped():
            """As many as are made at once, so that none of those that are asked for later is begun."""
            ask()
            makers = [pid for pid in children(up.process.pid) if command_of(pid).endswith("sonde-report")]
            for pid in makers:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
            return [state_of(pid) for pid in makers] == ["T"] * REPORTS and makers
        makers = wait_until(are_stopped, "reports are being made")
        for pid in makers:
            self.addCleanup(os.kill, pid, signal.SIGCONT)
        for _ in range(60):
            ask()
        self.assertEqual(up.get("/", headers=bob).status, 200)
        self.assertEqual([state_of(pid) for pid in makers], ["T"] * REPORTS)


class Store(Case):
    def damaged(self, damage):
        up = self.up("--source=sim:nodes=8", "--no-agent")
        job = self.job_in(up, "/jobs?kept=1")
        store, = self.directory.rglob("sonde.db")
        with stopped(up.process):
            damage(store)
        return up, job

    def check(self, damage, words):
        up, job = self.damaged(damage)
        answer = wait_until(lambda: (a := up.get("/jobs?kept=1")).status == 503 and a, "what needs the store says so")
        self.assertRegex(answer.text, words)
        self.assertEqual({path: up.get(path).status for path in ("/", "/jobs", "/nodes", "/partitions", "/metrics")},
                         dict.fromkeys(("/", "/jobs", "/nodes", "/partitions", "/metrics"), 200))
        self.assertIn(up.get(job).status, (200, 404, 503))
        self.assertEqual(up.get("/api/v1/queue").status, 200)
        self.assertEqual(up.get("/api/v1/jobs").status, 503)

    def test_garbage_in_its_place(self):
        def damage(store):
            for path in store.parent.glob("sonde.db*"):
                path.unlink()
            store.write_bytes(b"no store at all " * 1000)
            store.chmod(0o644)
        self.check(damage, "not a store|cannot be read")

    def test_a_directory_that_went_away(self):
        def damage(store):
            store.parent.rename(store.parent.with_suffix(".away"))
        self.check(damage, "cannot be read|cannot open")


class Hanging:
    """A Prometheus that takes every question and answers none."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.taken, self.questions = [], []
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        with contextlib.suppress(OSError):
            while True:
                connection = self.listener.accept()[0]
                self.taken.append(connection)
                threading.Thread(target=self.read, args=(connection,), daemon=True).start()

    def read(self, connection):
        text = b""
        with contextlib.suppress(OSError):
            while b"\r\n\r\n" not in text:
                text += connection.recv(65536) or b"\r\n\r\n"
        self.questions.append(urllib.parse.unquote_plus(text.decode(errors="replace")))

    def end(self):
        """Whoever waits is told that the connection is over."""
        for each in (self.listener, *self.taken):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()


class Prometheus(Case):
    def up_with(self, url, *flags):
        up = self.up("--source=sim:nodes=8", "--no-agent", "--series.path=", f"--prometheus.url={url}", *flags)
        return up, self.job_in(up, "/jobs?kept=1&state=RUNNING")

    def test_one_that_is_away_leaves_a_page_without_charts_that_says_why(self):
        address = f"{own_host()}:9090"
        up, job = self.up_with(f"http://{address}")
        page = up.get(job)
        self.assertEqual(page.status, 200)
        self.assertIn(address, page.text)
        self.assertRegex(page.text, "Connection refused|cannot be reached|Couldn't connect|Failed to connect")
        self.assertNotIn("<canvas", page.text)

    def test_one_that_hangs_delays_its_own_pages_only(self):
        hanging = Hanging()
        self.addCleanup(hanging.end)
        up, job = self.up_with(f"http://127.0.0.1:{hanging.port}", "--prometheus.timeout=4m")
        job_id = re.search(r"\d+", job)[0]
        with concurrent.futures.ThreadPoolExecutor() as pool:
            pages = [pool.submit(up.get, job) for _ in range(2)]  # one less than the share of who looks
            try:
                wait_until(lambda: sum(f'"{job_id}"' in text for text in hanging.questions) >= len(pages), "Prometheus is asked for each")
                self.assertEqual([up.get(path).status for path in ("/", "/jobs", "/nodes")], [200] * 3)
                self.assertFalse(any(page.done() for page in pages))
            finally:
                hanging.end()
        self.assertEqual([page.result().status for page in pages], [200] * 2)

    def test_one_that_hangs_is_given_up_and_the_page_says_so(self):
        hanging = Hanging()
        self.addCleanup(hanging.end)
        up, job = self.up_with(f"http://127.0.0.1:{hanging.port}", "--prometheus.timeout=1s")
        page = up.get(job)
        self.assertEqual(page.status, 200)
        self.assertRegex(page.text, "(?i)did not answer|timed out|has not answered|within")


if __name__ == "__main__":
    import tap
    tap.main()
