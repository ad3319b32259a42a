#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""That the invariants find what does not hold: invariants.py itself, on replies and stores with one fault each."""
import pathlib
import tempfile
import unittest

import invariants
from sonde import Exporter
from test_web import BASE, Probe

SCRIPT = """#!/bin/sh
cat <<END
{}
END
"""


class InReplies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.exporter = cls.enterClassContext(Exporter("--demo"))
        cls.text = cls.exporter.metrics().text

    def found(self, text, before=None):
        with self.assertRaises(AssertionError) as caught:
            invariants.Scrapes().check(text, before or {})
        return str(caught.exception)

    def test_a_reply_that_is_right_has_no_fault(self):
        invariants.Scrapes().check(self.text, {})

    def test_one_gpu_less_is_found(self):
        first = next(line for line in self.text.split("\n") if line.startswith("slurm_gpus_allocated{"))
        series, value = first.rsplit(" ", 1)
        changed = self.text.replace(first, f"{series} {int(value) - 1}")
        self.assertIn("slurm_gpus_allocated + slurm_gpus_idle + slurm_gpus_unusable is", self.found(changed))

    def test_one_job_more_of_a_user_is_found(self):
        first = next(line for line in self.text.split("\n") if line.startswith("slurm_user_state_total{") and 'state="RUNNING"' in line)
        series, value = first.rsplit(" ", 1)
        self.assertIn("slurm_user_state_total is", self.found(self.text.replace(first, f"{series} {int(value) + 1}")))

    def test_a_counter_that_falls_and_a_value_that_is_no_number_are_found(self):
        text = "# TYPE slurm_a_total counter\nslurm_a_total 4\n# TYPE b gauge\nb{x=\"y\"} NaN\n"
        found = self.found(text, {"slurm_a_total": 5})
        self.assertIn("slurm_a_total fell from 5 to 4", found)
        self.assertIn('b{x="y"} is not a number', found)


class InStores(unittest.TestCase):
    """store_probe writes three runs; a sacct that is a script prints them."""

    def setUp(self):
        self.place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.store = self.place / "sonde.db"
        probe = Probe(self.store)
        probe.runs("north", 3, 11, BASE)
        probe.end()
        self.lines = [f"{job}|{BASE}|{job}|COMPLETED|physics|gpu|4|{BASE + 10}|{BASE + 110}|cn-a[001-002]" for job in (11, 12, 13)]
        self.script("scontrol", "ClusterName             = north")

    def script(self, name, text):
        (self.place / name).write_text(SCRIPT.format(text))
        (self.place / name).chmod(0o755)

    def check(self):
        self.script("sacct", "\n".join(self.lines))
        invariants.check_store(self.store, [self.place])

    def found(self):
        with self.assertRaises(AssertionError) as caught:
            self.check()
        return str(caught.exception)

    def test_a_store_that_agrees_has_no_fault(self):
        self.check()

    def test_a_run_that_differs_is_found(self):
        self.lines[1] = self.lines[1].replace("|4|", "|5|")
        self.assertRegex(self.found(), r"run \(12, \d+\) of north: .* is recorded, sacct has")

    def test_a_run_that_slurmdbd_does_not_have_is_found(self):
        del self.lines[0]
        self.assertRegex(self.found(), r"run \(11, \d+\) of north: .* sacct has None")

    def test_tasks_that_are_not_counted_are_found(self):
        self.lines[2] = self.lines[2].replace("|13|", "|13_[1-6]|")
        self.assertIn("ended jobs of north: {'COMPLETED': 3} are counted, sacct has {'COMPLETED': 8}", self.found())

    def test_tasks_of_a_line_of_sacct(self):
        for text, count in (("7", 1), ("7_3", 1), ("7_[3]", 1), ("7_[0-8:2,9%3]", 6), ("7_[1-6%2]", 6), ("7_[1,3,5-6]", 4), ("7+1", 1)):
            self.assertEqual(invariants.tasks(text), count, text)


if __name__ == "__main__":
    import tap
    tap.main()
