#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The exporter on a real slurmrestd: tokens that change and expire, slurmrestd that goes and comes back.

That its numbers are those of the other doors is the business of test_doors.py, through the socket; here the port is
compared with the socket. SONDE_SUITES names the Debian releases to try, as for test_sandbox.py.
"""
import base64
import json
import pathlib
import re
import socket
import subprocess
import tempfile
import time
import unittest

from slurm import SUITES, Slurm
from sonde import DEADLINE, Exporter, own_host, wait_until

ALWAYS_ASK = [f"--slurm.{kind}poll-limit=1ms"
              for kind in ("", "shares-", "associations-", "reservations-", "licenses-", "config-")]
# The newest version of each release.
INTERFACES = {(22, 5): "v0.0.38", (24, 11): "v0.0.42", (26, 5): "v0.0.45"}
BYTES = 'sonde_source_read_bytes_total{source="rest",kind="jobs"}'
UP = 'sonde_source_up{source="rest",kind="jobs"}'
# Of the sandbox's users, jobs and partitions: what does not move while nothing starts or ends.
STEADY = re.compile("slurm_(node|cpus|partition|account|user|job|license|reservation|association|qos|config)\\w*")
FLEETING = re.compile("\\w+(_scrape_duration|_age_seconds|_wait_seconds\\w*|_load\\w*|_usage|_level|_factor|_free\\w*)")


def claims(token):
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


class Restd:
    """A slurmrestd of a test's own, which it may end."""

    port = 6820

    def __init__(self, slurm, host):
        self.slurm, self.host = slurm, host
        script = f"echo $$; exec env SLURM_JWT=daemon slurmrestd -a rest_auth/jwt {host}:{self.port}"
        self.process = subprocess.Popen(
            slurm.command("sh", "-c", script, user="monitor"),
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.pid = self.process.stdout.readline().strip()
        wait_until(self.listens, "slurmrestd listens")

    def listens(self):
        try:
            socket.create_connection((self.host, self.port)).close()
            return True
        except ConnectionRefusedError:
            return False

    def end(self):
        if self.process.poll() is None:
            self.slurm.run("kill", self.pid)
            self.process.wait(DEADLINE)
        self.process.stdout.close()


class Rest:
    """The tests; a class for each suite is made below."""

    suite = None
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm(cls.suite)
        cls.addClassCleanup(cls.slurm.end)
        cls.slurm.calm()

    def setUp(self):
        directory = self.enterContext(tempfile.TemporaryDirectory())
        self.token_file = pathlib.Path(directory, "token")

    def put_token(self, lifespan=3600):
        """As scontrol prints it; gives the token alone."""
        text = self.slurm.run("scontrol", "token", "username=root", f"lifespan={lifespan}").stdout
        fresh = self.token_file.with_suffix(".new")
        fresh.touch(0o600)
        fresh.write_text(text)
        fresh.rename(self.token_file)
        return text.strip().removeprefix("SLURM_JWT=")

    def exporter(self, *flags, url=None, **options):
        return self.enterContext(Exporter(
            "--source=rest", f"--slurm.rest-url={url or self.slurm.env['SANDBOX_RESTD']}", *ALWAYS_ASK, *flags, **options))

    def with_token(self, *flags, **options):
        return self.exporter(f"--slurm.rest-token-file={self.token_file}", *flags, **options)

    def expiry(self, exporter):
        return exporter.metrics().value('sonde_source_token_expiry_timestamp_seconds{source="rest"}')

    def test_the_newest_version_is_spoken(self):
        self.put_token()
        info = self.with_token().metrics().families()["sonde_source_info"]
        interfaces = [dict(series)["interface"] for series in info]
        self.assertEqual(interfaces, [INTERFACES[self.slurm.release]])

    def test_the_port_tells_what_the_socket_tells(self):
        self.put_token()
        doors = [self.exporter(url=f"unix:{self.slurm.env['SANDBOX_RESTD_SOCKET']}"), self.with_token()]

        def steady(exporter):
            return {name: series for name, series in exporter.metrics().families().items()
                    if STEADY.fullmatch(name) and not FLEETING.fullmatch(name)}

        def at_rest():
            before, told, after = steady(doors[0]), steady(doors[1]), steady(doors[0])
            return (before, told) if before == after else None
        expected, told = wait_until(at_rest, "the cluster is at rest")
        self.assertGreater(len(expected), 50)
        self.assertEqual(told, expected)

    def test_a_token_is_replaced_while_it_runs(self):
        first = claims(self.put_token(3600))
        exporter = self.with_token()
        self.assertEqual(self.expiry(exporter), first["exp"])
        second = claims(self.put_token(7200))
        exporter.metrics()
        self.assertEqual(self.expiry(exporter), second["exp"])
        answer = exporter.metrics()
        self.assertEqual(answer.value(UP), 1)
        self.assertNotIn("sonde_source_errors_total", " ".join(
            series for series, value in answer.samples().items() if float(value) and "shares" not in series))

    def test_a_token_that_expires_is_told_and_a_new_one_taken(self):
        token = self.put_token(1)
        wait_until(lambda: time.time() > claims(token)["exp"] + 1, "it has expired")
        exporter = self.with_token()
        answer = exporter.metrics()
        self.assertEqual(answer.value(UP), 0)
        self.assertEqual(answer.value(
            'sonde_source_errors_total{source="rest",kind="jobs",reason="denied"}'), 1)
        exporter.wait_log("has expired at")
        self.put_token()
        wait_until(lambda: exporter.metrics().value(UP) == 1, "the new one is taken")
        self.assertNotIn(token.split(".")[2], exporter.log())

    def test_a_token_near_its_end_is_warned_of_once(self):
        token = self.put_token()
        exporter = self.with_token(env={"SONDE_CLOCK": str(claims(token)["exp"] - 20)})
        exporter.metrics()
        exporter.wait_log("expires at")
        exporter.metrics()
        log = exporter.stop()
        self.assertEqual(len(re.findall("source warns.*expires at.*", log)), 1)

    def test_a_wrong_token_is_denied(self):
        head, payload, _ = self.put_token().split(".")
        self.token_file.write_text(f"{head}.{payload}.{'A' * 43}")
        exporter = self.with_token()
        self.assertEqual(exporter.metrics().value(UP), 0)
        # 22.05 does not say why
        exporter.wait_log("a token that slurmctld does not take" if self.slurm.release < (23, 2) else "does not take the token in")
        self.assertNotIn("A" * 43, exporter.log())

    def test_no_token_is_asked_for(self):
        exporter = self.exporter()
        self.assertEqual(exporter.metrics().value(UP), 0)
        exporter.wait_log("name its file with --slurm.rest-token-file")

    def test_slurmrestd_may_go_and_come_back(self):
        self.put_token()
        restd = Restd(self.slurm, own_host())
        self.addCleanup(restd.end)
        exporter = self.with_token(url=f"http://{restd.host}:{restd.port}")
        self.assertEqual(exporter.metrics().value(UP), 1)
        restd.end()
        wait_until(lambda: exporter.metrics().value(UP) == 0, "noticed")
        exporter.wait_log("Connection refused; is it running")
        again = Restd(self.slurm, restd.host)
        self.addCleanup(again.end)
        wait_until(lambda: exporter.metrics().value(UP) == 1, "works again by itself")

    def test_jobs_that_have_not_changed_cost_little(self):
        self.put_token()
        exporter = self.with_token()
        sizes = [exporter.metrics().value(BYTES)]

        def look():
            answer = exporter.metrics()
            sizes.append(answer.value(BYTES) - sum(sizes))
            return 0 < sizes[-1] < 20_000 and answer  # 22.05 is asked for its statistics too
        answer = wait_until(look, "once nothing has changed")
        self.assertGreater(sizes[0], 100_000)
        self.assertGreater(sum(answer.families()["slurm_job_count_per_state"].values()), 50)


for suite in SUITES:
    globals()[f"On_{suite}"] = type(f"On_{suite}", (Rest, unittest.TestCase), {"suite": suite})


if __name__ == "__main__":
    import tap
    tap.main()
