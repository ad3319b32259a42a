#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The exporter as its user meets it: flags, files, formats, signals, limits."""
import base64
import concurrent.futures
import os
import pathlib
import re
import resource
import signal
import socket
import subprocess
import tempfile
import unittest

from prometheus_client import parser as text_parser
from prometheus_client.openmetrics import parser as openmetrics_parser

import sonde
from clock import Clock
from sonde import Exporter, FakeCommands, http_get, job, node, run_exporter, wait_until

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
PROMETHEUS_ACCEPT = ("application/openmetrics-text;version=1.0.0;q=0.5,"
                     "application/openmetrics-text;version=0.0.1;q=0.4,"
                     "text/plain;version=0.0.4;q=0.3,*/*;q=0.2")


class Formats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.exporter = Exporter("--demo")

    @classmethod
    def tearDownClass(cls):
        cls.exporter.stop()

    def test_text_is_read_by_somebody_elses_parser(self):
        answer = self.exporter.metrics()
        self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
        families = {f.name: f for f in text_parser.text_string_to_metric_families(answer.text)}
        self.assertIn("slurm_user_state_total", families)
        self.assertEqual(len(answer.samples()), sum(len(f.samples) for f in families.values()))

    def test_openmetrics_is_read_by_somebody_elses_parser(self):
        answer = self.exporter.metrics(Accept=PROMETHEUS_ACCEPT)
        self.assertEqual(answer.headers["Content-Type"],
                         "application/openmetrics-text; version=1.0.0; charset=utf-8")
        self.assertTrue(answer.text.endswith("# EOF\n"))
        families = {f.name: f for f in openmetrics_parser.text_string_to_metric_families(answer.text)}
        self.assertEqual(families["process_cpu_seconds"].type, "counter")
        self.assertEqual(families["sonde_source_refresh_duration_seconds"].type, "histogram")

    def test_the_limit_of_virtual_memory_is_the_one_that_the_kernel_lists(self):
        def shown(exporter):
            limits = pathlib.Path(f"/proc/{exporter.process.pid}/limits").read_text()
            soft = re.search(r"^Max address space +(\S+)", limits, re.M)[1]
            (value,) = exporter.metrics().families()["process_virtual_memory_max_bytes"].values()
            return soft, value
        limit = 1 << 47
        with Exporter("--demo", starter=["prlimit", f"--as={limit}:"]) as exporter:
            self.assertEqual(shown(exporter), (str(limit), limit))
        with Exporter("--demo", starter=["prlimit", "--as=unlimited"]) as exporter:
            self.assertEqual(shown(exporter), ("unlimited", float(2**64 - 1)))  # as client_golang has it

    def test_gzip_is_one_member_with_the_same_text(self):
        plain, packed = self.exporter.metrics(), None
        for accept in ("gzip", "deflate, gzip;q=0.5"):
            packed = self.exporter.metrics(Accept_Encoding=accept)
            self.assertEqual(packed.headers["Content-Encoding"], "gzip")
            self.assertEqual(plain.samples().keys(), packed.samples().keys())
        for accept in ("identity", "gzip;q=0", "br"):
            self.assertIsNone(self.exporter.metrics(Accept_Encoding=accept).headers["Content-Encoding"])

    def test_every_sample_of_a_demo_says_so(self):
        for series in self.exporter.metrics().samples():
            self.assertIn('simulated="true"', series)

    def test_collectors_can_be_chosen(self):
        answer = self.exporter.get("/metrics?collect[]=nodes&collect[]=partitions")
        self.assertIn("slurm_cpus_total", answer.text)
        self.assertIn("slurm_partition_total_cpus", answer.text)
        self.assertNotIn("slurm_user_state_total", answer.text)
        self.assertIn("sonde_build_info", answer.text)

    def test_an_unknown_collector_is_named(self):
        answer = self.exporter.get("/metrics?collect[]=nodez")
        self.assertEqual(answer.status, 400)
        self.assertIn('"nodez"', answer.text)

    def test_the_landing_page_links_to_the_metrics(self):
        answer = self.exporter.get("/")
        self.assertEqual(answer.status, 200)
        self.assertIn('<a href="/metrics">', answer.text)
        self.assertIn("Simulated cluster", answer.text)

    def test_health_is_told(self):
        self.assertEqual(self.exporter.get("/-/healthy").status, 200)
        self.assertEqual(self.exporter.get("/-/ready").status, 200)

    def test_what_is_not_there_is_404_and_a_wrong_method_405(self):
        self.assertEqual(self.exporter.get("/nothing").status, 404)
        self.assertEqual(self.exporter.get("/metrics", method="DELETE").status, 405)
        self.assertEqual(self.exporter.get("/-/reload").status, 405)

    def test_head_has_no_body(self):
        answer = self.exporter.get("/metrics", method="HEAD")
        self.assertEqual((answer.status, answer.body), (200, b""))


class Flags(unittest.TestCase):
    def test_one_dash_is_as_good_as_two(self):
        with Exporter("-demo", "-web.telemetry-path", "/slurm") as exporter:
            self.assertEqual(exporter.get("/slurm").status, 200)
            self.assertEqual(exporter.get("/metrics").status, 404)

    def test_a_collector_can_be_switched_off(self):
        with Exporter("--demo", "--no-collector.users") as exporter:
            self.assertNotIn("slurm_user_state_total", exporter.metrics().text)
            self.assertEqual(exporter.get("/metrics?collect[]=users").status, 400)

    def test_an_unknown_flag_is_named_with_its_neighbour(self):
        done = run_exporter("--web.listen-adress=:1")
        self.assertEqual(done.returncode, 2)
        self.assertIn("web.listen-adress", done.stderr)
        self.assertIn("--web.listen-address", done.stderr)

    def test_an_unknown_key_is_named_with_its_line(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            file.write("slurm:\n  poll-limit: 5s\n  pol-limit: 6s\n")
            file.flush()
            done = run_exporter(f"--config.file={file.name}")
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{file.name}:3", done.stderr)
        self.assertIn("slurm.poll-limit", done.stderr)

    def test_a_taken_port_is_one_clear_sentence(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            done = run_exporter("--demo", f"--web.listen-address=127.0.0.1:{port}")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(done.stderr.splitlines()), 1)
        self.assertIn(str(port), done.stderr)

    def test_an_unknown_source_is_named(self):
        done = run_exporter("--source=telepathy")
        self.assertEqual(done.returncode, 2)
        self.assertIn("telepathy", done.stderr)

    def test_a_demo_of_a_real_source_is_refused(self):
        done = run_exporter("--demo", "--source=cli")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--demo and --source", done.stderr)

    def test_a_missing_squeue_is_told_at_the_start(self):
        with Exporter("--slurm.bin-path=/no/such/place") as exporter:
            wait_until(lambda: "/no/such/place/sinfo is not to be found" in exporter.log(), "told")
            exporter.wait_log("--slurm.bin-path")

    def test_help_and_version(self):
        done = run_exporter("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("--web.listen-address", "--slurm.poll-limit", "POLL_LIMIT", "--[no-]collector.jobs"):
            self.assertIn(word, done.stdout)
        self.assertTrue(all(len(line) <= 100 for line in done.stdout.splitlines()))
        self.assertRegex(run_exporter("--version").stdout, r"^sonde \d+\.\d+\.\d+\n$")

    def test_a_unix_socket_serves(self):
        with tempfile.TemporaryDirectory() as directory:
            path = f"{directory}/sonde.sock"
            process = subprocess.Popen([sonde.SONDE, "exporter", "--demo",
                                        f"--web.listen-address=unix:{path}"],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            self.assertIn(path, process.stdout.readline().decode())
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(path)
                client.sendall(b"GET /-/healthy HTTP/1.0\r\n\r\n")
                self.assertIn(b"200 OK", client.recv(4096))
            process.terminate()
            self.assertEqual(process.wait(sonde.DEADLINE), 0)
            process.stdout.close()

    def test_several_addresses_serve(self):
        process = subprocess.Popen([sonde.SONDE, "exporter", "--demo",
                                    "--web.listen-address=127.0.0.1:0",
                                    "--web.listen-address=127.0.0.2:0"],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        lines = [process.stdout.readline().decode().split()[-1] for _ in range(2)]
        for url in lines:
            self.assertEqual(http_get(url).status, 200)
        process.terminate()
        self.assertEqual(process.wait(sonde.DEADLINE), 0)
        process.stdout.close()


class Passwords(unittest.TestCase):
    # "correct horse", bcrypt at a cost low enough for a test
    CONFIG = "basic_auth_users:\n  alice: $2b$05$abcdefghijklmnopqrstuuHNbAKRhpaujgo33bRWs.NLUTJO3lOy2\n"

    def test_only_who_knows_the_password_sees_the_metrics(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            file.write(self.CONFIG)
            file.flush()
            exporter = self.enterContext(Exporter("--demo", f"--web.config.file={file.name}"))
            self.assertEqual(exporter.get("/metrics").status, 401)
            self.assertEqual(exporter.get("/-/healthy").status, 200)
            for password, status in (("correct horse", 200), ("wrong", 401), ("correct horse", 200)):
                token = base64.b64encode(f"alice:{password}".encode()).decode()
                answer = exporter.get("/metrics", headers={"Authorization": f"Basic {token}"})
                self.assertEqual(answer.status, status, password)


class Signals(unittest.TestCase):
    def test_interrupt_and_terminate_end_it_cleanly(self):
        for with_signal in (signal.SIGINT, signal.SIGTERM):
            exporter = Exporter("--demo")
            exporter.metrics()
            exporter.stop(with_signal)

    def test_it_ends_at_once_while_squeue_hangs_and_answers_who_waits(self):
        with FakeCommands() as commands, concurrent.futures.ThreadPoolExecutor(1) as pool:
            commands.hold("squeue")
            exporter = Exporter(path=commands.path)
            # Little enough for a socket to take at once: what is not read after some seconds, the end of the exporter cuts off.
            waiting = pool.submit(exporter.get, "/metrics?collect[]=jobs")
            commands.wait_held("squeue")
            exporter.stop()
            self.assertEqual(waiting.result().value('sonde_source_up{source="cli",kind="jobs"}'), 0)

    def test_hangup_and_reload_read_the_file_again_or_keep_what_was(self):
        with tempfile.TemporaryDirectory() as directory:
            file = pathlib.Path(directory, "sonde.yml")
            file.write_text("collector:\n  users: false\n")
            exporter = self.enterContext(Exporter("--demo", f"--config.file={file}"))
            self.assertNotIn("slurm_user_state_total", exporter.metrics().text)

            file.write_text("collector:\n  users: true\n")
            answer = exporter.get("/-/reload", method="POST")
            self.assertEqual(answer.status, 200, answer.text)
            self.assertIn("slurm_user_state_total", exporter.metrics().text)

            file.write_text("collector:\n  userz: true\n")
            answer = exporter.get("/-/reload", method="POST")
            self.assertEqual(answer.status, 500)
            self.assertIn("userz", answer.text)
            self.assertIn("slurm_user_state_total", exporter.metrics().text)

            file.write_text("collector:\n  users: false\n")
            exporter.process.send_signal(signal.SIGHUP)
            wait_until(lambda: "slurm_user_state_total" not in exporter.metrics().text, "reloaded by SIGHUP")

            file.write_text("web:\n  telemetry-path: /elsewhere\n")
            answer = exporter.get("/-/reload", method="POST")
            self.assertEqual(answer.status, 500)
            self.assertIn("restart", answer.text)


    def test_reload_neither_asks_slurm_nor_forgets_what_it_said(self):
        with FakeCommands(f"echo x >>\"$(dirname \"$0\")/count\"; answer '{job()}'", f"answer '{node()}'") as commands, \
                Clock(stands=1800000000) as clock, Exporter(path=commands.path, env=clock.env) as exporter:
            for _ in range(5):
                self.assertEqual(exporter.metrics().value('slurm_job_count_per_state{state="RUNNING"}'), 1)
                self.assertEqual(exporter.get("/-/reload", method="POST").status, 200)
            with open(f"{commands.path}/count") as file:
                self.assertEqual(len(file.readlines()), 1)

    def test_no_web_page_can_make_it_reload(self):
        with Exporter("--demo") as exporter:
            answer = exporter.get("/-/reload", method="POST", headers={"Origin": "http://evil.example"})
            self.assertEqual(answer.status, 403)


class Crowds(unittest.TestCase):
    def send(self, exporter, request):
        """What comes back on one connection until it is closed."""
        with socket.create_connection(("127.0.0.1", exporter.port), sonde.DEADLINE) as client:
            client.sendall(request)
            return b"".join(iter(lambda: client.recv(65536), b""))

    def test_a_request_that_proxies_may_read_in_two_ways_is_refused(self):
        exporter = self.enterContext(Exporter("--demo"))
        smuggled = b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n"
        for lengths in (b"Content-Length: 0\r\nContent-Length: 40\r\n\r\n",
                        b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"):
            answer = self.send(exporter, b"POST /-/reload HTTP/1.1\r\nHost: x\r\n" + lengths + smuggled)
            self.assertTrue(answer.startswith(b"HTTP/1.1 400 "), answer)
            self.assertEqual(answer.count(b"HTTP/1.1 "), 1, answer)

    def test_a_moment_without_descriptors_does_not_make_it_deaf(self):
        exporter = self.enterContext(Exporter("--demo"))
        pid = exporter.process.pid
        with socket.create_connection(("127.0.0.1", exporter.port)) as kept:
            kept.sendall(b"GET /-/healthy HTTP/1.1\r\nHost: x\r\n\r\n")
            kept.recv(4096)
            before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
            in_use = len(os.listdir(f"/proc/{pid}/fd"))
            resource.prlimit(pid, resource.RLIMIT_NOFILE, (in_use, before[1]))
            with socket.create_connection(("127.0.0.1", exporter.port)):
                wait_until(lambda: "no connection can be accepted" in exporter.log(), "noticed")
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
            self.assertEqual(exporter.get("/-/healthy").status, 200)

    def test_a_thousand_idle_connections_and_a_slow_sender_hold_up_nobody(self):
        clock = self.enterContext(Clock(stands=1800000000))  # no connection is closed for its age
        exporter = self.enterContext(Exporter("--demo", "--web.max-connections=500", env=clock.env))
        idle = [socket.create_connection(("127.0.0.1", exporter.port)) for _ in range(1000)]
        slow = socket.create_connection(("127.0.0.1", exporter.port))
        try:
            for byte in b"GET /me":
                slow.sendall(bytes([byte]))
                self.assertEqual(exporter.metrics().status, 200)
        finally:
            for connection in idle + [slow]:
                connection.close()


if __name__ == "__main__":
    import tap
    tap.main()
