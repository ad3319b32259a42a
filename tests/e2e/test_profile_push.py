#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""src/plugin/sender against the real Pushgateways of Debian's releases; SONDE_SUITES names them, as for test_sandbox.py."""
import base64
import pathlib
import socket
import ssl
import subprocess
import tempfile
import unittest
import urllib.request

from pushgateway import Pushgateway
from slurm import SUITES
from sonde import BUILD, DEADLINE, Answer, Log, mount_namespace, own_host, wait_until
from capabilities import need

RSS = "slurm_profile_task_resident_memory_bytes"


class Probe:
    """sender_probe: a step of job 7 on node n1 with a sender."""

    def __init__(self, target, step="0", starter=(), timeout_ms=DEADLINE * 1000):
        self.errors = Log()
        self.process = subprocess.Popen([*starter, BUILD / "tests/plugin/sender_probe", target, step, str(timeout_ms)],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors.file)

    def _say(self, line):
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def start(self):
        self._say("start")
        answer = self.process.stdout.readline().decode()
        assert answer == "started\n", f"{answer} {self.log()}"

    def sample(self, task, kib):
        self._say(f"sample {task} {kib}")

    def stop(self, milliseconds=DEADLINE * 1000, answers=("ended\n",)):
        self._say(f"stop {milliseconds}")
        answer = self.process.stdout.readline().decode()
        assert answer in answers, f"{answer} {self.log()}"
        return answer

    def log(self):
        return self.errors.text()

    def end(self):
        """Its status tells of leaks, unless it was left in the middle."""
        self.process.stdin.close()
        try:
            status = self.process.wait(DEADLINE)
        finally:
            self.process.kill()
            self.process.stdout.close()
            log = self.log()
            self.errors.close()
        assert status == 0, f"exit status {status}: {log}"


class GuardedPushgateway(Pushgateway):
    """With TLS and a password."""

    user, password = "pusher", "s3:c@ret"
    in_url = "pusher:s3%3Ac%40ret"

    def __init__(self, suite, directory):
        host = own_host()
        self.certificate = directory / "cert.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                        "-days", "1", "-subj", "/CN=gateway", "-addext", f"subjectAltName=IP:{host}",
                        "-keyout", directory / "key.pem", "-out", self.certificate], check=True, capture_output=True)
        (directory / "web.yml").write_text(
            "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n"
            # the password, bcrypt at a cost low enough for a test
            f"basic_auth_users:\n  {self.user}: $2b$04$abcdefghijklmnopqrstuu3eXRofj2UpJZg1bq3MJeC0UqD4Qkq.a\n")
        super().__init__(suite, f"--web.config.file={directory / 'web.yml'}", host=host)

    def _is_ready(self):
        assert self.process.poll() is None, f"the Pushgateway has ended: {self.log()}"
        try:
            with socket.create_connection(tuple(self.address.split(":"))):
                return True
        except OSError:
            return False

    def families(self):
        token = base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        request = urllib.request.Request(f"https://{self.address}/metrics",
                                         headers={"Authorization": f"Basic {token}"})
        with urllib.request.urlopen(request, context=ssl.create_default_context(cafile=self.certificate)) as reply:
            return Answer(reply.status, reply.headers, reply.read()).families()


class WithPushgateway:
    """The tests; a class for each suite is made below."""

    suite = None

    def gateway(self):
        gateway = Pushgateway(self.suite)
        self.addCleanup(gateway.end)
        return gateway

    def probe(self, target, step="0", **options):
        probe = Probe(target, step, **options)
        self.addCleanup(probe.end)
        return probe

    @staticmethod
    def of_step(gateway, name, step):
        """task → value."""
        found = [(dict(labels), value) for labels, value in gateway.families().get(name, {}).items()]
        return {labels.get("task"): value for labels, value in found
                if labels.get("step") == step and labels.get("job") == "7" and labels.get("instance") == "n1"}

    def await_values(self, gateway, step, values):
        wait_until(lambda: self.of_step(gateway, RSS, step) == values, f"{values} of step {step}")

    @staticmethod
    def await_empty(gateway):
        """A Pushgateway deletes after it has replied."""
        wait_until(lambda: gateway.families() == {}, "all is deleted")

    def test_values_arrive_and_are_gone_at_the_end(self):
        gateway = self.gateway()
        probe = self.probe(gateway.url)
        probe.sample(0, 1)
        probe.sample(3, 2)
        probe.start()
        self.await_values(gateway, "0", {"0": 1024, "3": 2048})
        self.assertEqual(set(self.of_step(gateway, "RSS", "0").values()), {1, 2})
        probe.sample(0, 10)
        self.await_values(gateway, "0", {"0": 10240, "3": 2048})
        probe.stop()
        self.await_empty(gateway)
        self.assertEqual(gateway.instances("7"), set())
        self.assertEqual(probe.log(), "")

    def test_two_steps_do_not_overwrite_each_other(self):
        gateway = self.gateway()
        first, second = self.probe(gateway.url, "batch"), self.probe(gateway.url, "1")
        first.sample(0, 1)
        second.sample(0, 2)
        first.start()
        second.start()
        self.await_values(gateway, "batch", {"0": 1024})
        self.await_values(gateway, "1", {"0": 2048})
        second.stop()
        self.await_values(gateway, "1", {})
        self.assertEqual(self.of_step(gateway, RSS, "batch"), {"0": 1024})
        first.stop()
        self.await_empty(gateway)

    def test_one_that_was_started_again_gets_the_next_values(self):
        gateway = self.gateway()
        probe = self.probe(gateway.url)
        probe.sample(0, 1)
        probe.start()
        self.await_values(gateway, "0", {"0": 1024})
        gateway.stop()
        probe.sample(0, 2)
        wait_until(lambda: "takes no connection" in probe.log(), "it is noticed that it has gone")
        gateway.start()
        self.await_values(gateway, "0", {"0": 2048})
        wait_until(lambda: "again, after" in probe.log(), "it is told that it is back")
        probe.stop()
        self.await_empty(gateway)
        self.assertEqual(probe.log().count("\n"), 2)

    def test_one_that_hangs_does_not_hold_up_the_end(self):
        gateway = self.gateway()
        probe = self.probe(gateway.url)
        probe.sample(0, 1)
        probe.start()
        self.await_values(gateway, "0", {"0": 1024})
        gateway.pause()
        probe.sample(0, 2)
        # Its last tenth of a second is for its own end, which a busy machine may not grant.
        if probe.stop(1000, answers=("ended\n", "busy\n")) == "ended\n":
            self.assertIn("stays there", probe.log())

    def test_one_that_is_known_to_hang_is_not_waited_for(self):
        gateway = self.gateway()
        probe = self.probe(gateway.url, timeout_ms=100)
        gateway.pause()
        probe.sample(0, 1)
        probe.start()
        wait_until(lambda: "did not answer in time" in probe.log(), "a turn that fails")
        probe.stop()
        self.assertEqual(probe.log().count("\n"), 1)

    def test_a_thousand_tasks_are_pushed(self):
        gateway = self.gateway()
        probe = self.probe(gateway.url)
        for task in range(1000):
            probe.sample(task, task + 1)
        probe.start()
        self.await_values(gateway, "0", {str(task): 1024 * (task + 1) for task in range(1000)})
        probe.stop()
        self.await_empty(gateway)

    def test_a_password_and_a_trusted_certificate_open_the_way(self):
        """Trust is the node's own: for one process the file of its authorities is another."""
        need("openssl")
        need("mounts")
        with tempfile.TemporaryDirectory() as directory:
            gateway = GuardedPushgateway(self.suite, pathlib.Path(directory))
            self.addCleanup(gateway.end)
            authorities = pathlib.Path("/etc/ssl/certs/ca-certificates.crt")
            starter = [*mount_namespace(), "sh", "-c", f'mount --bind {gateway.certificate} {authorities} && exec "$@"', "sh"]
            probe = self.probe(f"https://{gateway.in_url}@{gateway.address}", starter=starter)
            probe.sample(0, 1)
            probe.start()
            self.await_values(gateway, "0", {"0": 1024})
            probe.stop()
            self.assertEqual(self.of_step(gateway, RSS, "0"), {})
            wrong = self.probe(f"https://pusher:wrong@{gateway.address}", starter=starter)
            wrong.sample(0, 1)
            wrong.start()
            wait_until(lambda: "status 401" in wrong.log(), "the password is refused")
            self.assertNotIn("wrong", wrong.log())
            stranger = self.probe(f"https://{gateway.in_url}@{gateway.address}")
            stranger.sample(0, 1)
            stranger.start()
            wait_until(lambda: "no certificate that this node trusts" in stranger.log(), "the certificate is refused")
            self.assertEqual(self.of_step(gateway, RSS, "0"), {})


for suite in SUITES:
    globals()[f"With_{suite}"] = type(f"With_{suite}", (WithPushgateway, unittest.TestCase), {"suite": suite})


if __name__ == "__main__":
    import tap
    tap.main()
