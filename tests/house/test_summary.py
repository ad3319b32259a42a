#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""scripts/summary.py on made results of meson: what counts as failed, and what the reader gets to see."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from xml.sax.saxutils import quoteattr

ROOT = pathlib.Path(__file__).resolve().parents[2]


class SummaryTest(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (self.directory / "phases").write_text("75 build\n4 unit\n")
        self.suites, self.runs = [], []

    def add(self, program, *lines, result="OK", status=0, seconds=1):
        """A program that printed these lines of TAP, as meson records it."""
        cases = ""
        for line in lines:
            number, _, name = line.removeprefix("not ").removeprefix("ok ").partition("# SKIP")[0].strip().partition(" - ")
            inside = "<failure/>" if line.startswith("not ok") else "<skipped/>" if "# SKIP" in line else ""
            cases += f"<testcase name={quoteattr(f'{number} - {name}')}>{inside}</testcase>" if line.startswith(("ok", "not ok")) else ""
        self.suites.append(f"<testsuite name={quoteattr(f'sonde.sonde:unit / {program}')}>{cases}</testsuite>")
        self.runs.append({"name": f"sonde:unit / {program}", "stdout": "\n".join(lines), "result": result,
                          "returncode": status, "duration": seconds})

    def add_skipped_whole(self, program, reason):
        self.suites.append(f"<testsuite name='sonde'><testcase name={quoteattr(f'sonde:unit / {program}')}><skipped/></testcase></testsuite>")
        self.runs.append({"name": f"sonde:unit / {program}", "stdout": f"1..0 # SKIP {reason}", "result": "SKIP",
                          "returncode": 0, "duration": 0})

    def summarize(self, missing=""):
        (self.directory / "results-unit.xml").write_text(f"<testsuites>{''.join(self.suites)}</testsuites>")
        (self.directory / "results-unit.json").write_text("".join(json.dumps(run) + "\n" for run in self.runs))
        done = subprocess.run([sys.executable, ROOT / "scripts/summary.py", self.directory / "phases", self.directory / "results-unit"],
                              capture_output=True, text=True, env=dict(os.environ, SONDE_MISSING=missing))
        self.assertEqual(done.stderr, "")
        return done.returncode, done.stdout.splitlines()

    def test_passed_tests_are_counted_in_the_last_line(self):
        self.add("a", "ok 1 - x", "ok 2 - y")
        self.add("b", "ok 1 - z")
        status, lines = self.summarize()
        self.assertEqual((status, lines[-1]), (0, "3 passed, 0 failed, 0 skipped"))

    def test_a_failure_is_shown_with_what_the_test_printed(self):
        self.add("a", "ok 1 - x", "# got 3, expected 4", "not ok 2 - y", result="FAIL", status=1)
        status, lines = self.summarize()
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 0 skipped"))
        self.assertIn("FAILED: sonde:unit / a: 2 - y", lines)
        self.assertIn("    # got 3, expected 4", lines)

    def test_a_program_that_dies_counts_as_failed(self):
        self.add("a", "ok 1 - x", result="ERROR", status=-11)
        self.add("b", result="TIMEOUT", status=-9)
        status, lines = self.summarize()
        self.assertEqual((status, lines[-1]), (1, "1 passed, 2 failed, 0 skipped"))

    def test_a_skip_for_a_missing_capability_is_allowed(self):
        self.add("a", "ok 1 - x", "ok 2 - y # SKIP needs taskstats: not permitted")
        status, lines = self.summarize(missing="taskstats: not permitted")
        self.assertEqual((status, lines[-1]), (0, "1 passed, 0 failed, 1 skipped"))
        self.assertIn("skipped: sonde:unit / a: 2 - y: needs taskstats: not permitted", lines)

    def test_a_skip_for_a_capability_that_the_machine_has_is_a_failure(self):
        self.add("a", "ok 1 - x", "ok 2 - y # SKIP needs taskstats: not permitted")
        self.assertEqual(self.summarize(missing="chromium: none")[1][-1], "1 passed, 1 failed, 0 skipped")

    def test_a_skip_that_is_listed_is_allowed_and_any_other_is_a_failure(self):
        self.add("a", "ok 1 - x")
        self.add_skipped_whole("nvml_abi", "there is no nvml.h")
        self.assertEqual(self.summarize()[1][-1], "1 passed, 0 failed, 1 skipped")
        self.add_skipped_whole("b", "no wish to")
        status, lines = self.summarize()
        self.assertEqual((status, lines[-1]), (1, "1 passed, 1 failed, 1 skipped"))

    def test_no_test_at_all_is_a_failure(self):
        status, lines = self.summarize()
        self.assertEqual((status, lines[-1]), (1, "0 passed, 0 failed, 0 skipped"))

    def test_times_of_phases_and_the_slowest_programs_are_shown(self):
        for i in range(12):
            self.add(f"p{i}", "ok 1 - x", seconds=i)
        lines = self.summarize()[1]
        self.assertIn("Time: build 1 min 15 s, unit 4 s", lines)
        slowest = next(line for line in lines if line.startswith("Slowest programs: "))
        self.assertTrue(slowest.startswith("Slowest programs: p11 (unit) 11 s, p10 (unit) 10 s"))
        self.assertNotIn("p1 ", slowest)


if __name__ == "__main__":
    import tap
    tap.main()
