#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""src/push against the real Pushgateways of Debian's releases; SONDE_SUITES names them, as for test_sandbox.py."""
import os
import re
import subprocess
import unittest

from pushgateway import Pushgateway
from slurm import SUITES
from sonde import BUILD, DEADLINE, Log, wait_until


class Probe:
    """push_probe, which pushes what it is told to."""

    def __init__(self, url):
        self.errors = Log()
        self.process = subprocess.Popen([BUILD / "tests/e2e/push_probe", url, str(DEADLINE * 1000)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors.file)

    def _say(self, data):
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def put(self, instance, text):
        data = text.encode()
        self._say(b"put %d %s\n%s" % (len(data), os.fsencode(instance), data))

    def stats(self):
        self._say(b"stats\n")
        line = self.process.stdout.readline().decode()
        return {name: float(value) for name, value in re.findall(r"(\w+)=(\S+)", line)}

    def await_stats(self, **wanted):
        """Until each is at least that."""
        def has_come():
            stats = self.stats()
            return all(stats[name] >= value for name, value in wanted.items()) and stats
        return wait_until(has_come, f"{wanted} in the probe's numbers")

    def push(self, instance, text):
        before = self.stats()["pushes"]
        self.put(instance, text)
        return self.await_stats(pushes=before + 1)

    def log(self):
        return self.errors.text()

    def await_log(self, words):
        wait_until(lambda: words in self.log(), f"{words!r} in the probe's log")

    def stop(self, milliseconds=DEADLINE * 1000):
        self._say(b"stop %d\n" % milliseconds)
        status = self.process.wait(DEADLINE)
        assert status == 0, f"exit status {status}: {self.log()}"

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()
        self.errors.close()


class WithPushgateway:
    """The tests; a class for each suite is made below."""

    suite = None

    def setUp(self):
        self.gateway = Pushgateway(self.suite)
        self.addCleanup(self.gateway.end)
        self.probe = Probe(self.gateway.url)
        self.addCleanup(self.probe.end)

    def value(self, name, instance):
        return self.gateway.families().get(name, {}).get((("instance", instance), ("job", "probe")))

    def test_what_is_pushed_is_there_until_the_end(self):
        self.probe.push("n1", '# TYPE a gauge\na{instance="other"} 1\n')
        self.assertEqual(self.value("a", "n1"), 1)
        self.probe.stop()
        self.assertEqual(self.gateway.families(), {})
        self.assertEqual(self.gateway.instances("probe"), set())
        self.assertEqual(self.probe.log(), "")

    def test_a_push_takes_the_place_of_all_before(self):
        self.probe.push("n1", "a 1\nb 2\n")
        self.probe.push("n2", "a 3\n")
        self.probe.push("n1", "b 4\n")
        self.assertEqual((self.value("a", "n1"), self.value("b", "n1"), self.value("a", "n2")), (None, 4, 3))
        self.probe.push("n1", "")
        self.assertIsNone(self.value("b", "n1"))
        self.probe.stop()
        self.assertEqual(self.gateway.instances("probe"), set())

    def test_an_instance_may_have_any_name(self):
        names = {"a/b": "a/b", "/": "/", "": "", ".": ".", "..": "..", "a b%2F+?#": "a b%2F+?#", "ü\\\"": "ü\\\"",
                 "\udcff": "\ufffd", "n" * 255: "n" * 255}
        for number, name in enumerate(names):
            self.probe.push(name, f"a {number}\n")
        for number, name in enumerate(names.values()):
            self.assertEqual(self.value("a", name), number, name)
        self.probe.stop()
        self.assertEqual(self.gateway.instances("probe"), set())

    def test_what_it_refuses_is_told_in_its_words(self):
        self.probe.put("n1", "a 1\nb")
        self.probe.await_stats(failures=1)
        self.probe.await_log("\n")
        self.assertIn("answered with status 400", self.probe.log())
        self.assertIn("text format parsing error in line 2", self.probe.log())
        self.probe.push("n1", "a 2\n")
        self.assertEqual(self.value("a", "n1"), 2)
        self.probe.stop()
        self.assertEqual(self.probe.log().count("\n"), 2)

    def test_a_restart_loses_what_the_next_push_brings_back(self):
        self.probe.push("n1", "a 1\n")
        self.gateway.stop()
        self.probe.put("n1", "a 2\n")
        self.probe.await_stats(failures=2)
        self.gateway.start()
        self.probe.await_stats(pushes=2)
        self.assertEqual(self.value("a", "n1"), 2)
        self.probe.stop()
        self.assertEqual(self.probe.log().count("\n"), 2)

    def test_one_that_hangs_does_not_hold_up_the_end(self):
        self.probe.push("n1", "a 1\n")
        self.gateway.pause()
        self.probe.stop(500)
        self.assertIn("stays on the Pushgateway", self.probe.log())
        self.gateway.resume()
        wait_until(lambda: self.gateway.instances("probe") in ({"n1"}, set()), "it answers again")

    def test_a_group_whose_owner_was_killed_stays_until_it_is_deleted(self):
        self.probe.push("n1", "a 1\n")
        self.probe.process.kill()
        self.probe.process.wait()
        self.assertEqual(self.value("a", "n1"), 1)
        self.gateway.delete("probe", "n1")
        self.assertEqual(self.gateway.instances("probe"), set())

    def test_megabytes_are_pushed(self):
        text = "".join(f'a{{job_id="{number}",node="n1"}} {number}.5\n' for number in range(40000))
        self.assertGreater(len(text), 1 << 20)
        self.probe.push("n1", text)
        self.assertEqual(len(self.gateway.families()["a"]), 40000)


for suite in SUITES:
    globals()[f"With_{suite}"] = type(f"With_{suite}", (WithPushgateway, unittest.TestCase), {"suite": suite})


if __name__ == "__main__":
    import tap
    tap.main()
