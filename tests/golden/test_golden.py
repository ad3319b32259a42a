#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The real exporter on recorded answers of real Slurms, compared with files, one per collector.

With SONDE_UPDATE_GOLDEN=1 the files are rewritten instead: ./check golden --update.
"""
import difflib
import os
import pathlib
import re
import subprocess
import unittest

import sonde
from sonde import BUILD, ROOT, Exporter, FakeCommands

UPDATE = os.environ.get("SONDE_UPDATE_GOLDEN") == "1"
HERE = pathlib.Path(__file__).parent
TOKEN = "@0123456789abcdef@"  # what tests/golden/record asked for


def compare(test, path, actual):
    """With the file, or rewrites it; shows the difference."""
    if UPDATE:
        path.write_text(actual)
        return
    expected = path.read_text() if path.exists() else ""
    if actual != expected:
        test.fail("".join(difflib.unified_diff(
            expected.splitlines(True), actual.splitlines(True), str(path.relative_to(ROOT)), "now")))


def collector_names():
    table = (ROOT / "src/collector/table.inc").read_text()
    return re.findall(r"^ROW\((\w+)\)", table, re.M)


class Recorded(unittest.TestCase):
    def check_recording(self, directory):
        replay = "sed \"s/{}/$token/g\" {}"
        commands = self.enterContext(FakeCommands(
            squeue=replay.format(TOKEN, directory / "squeue.txt"),
            sinfo=replay.format(TOKEN, directory / "sinfo.txt")))
        exporter = self.enterContext(Exporter(path=commands.path))
        for name in collector_names():
            with self.subTest(collector=name):
                answer = exporter.get(f"/metrics?collect[]={name}")
                self.assertEqual(answer.status, 200, answer.text)
                lines = [line for line in answer.text.splitlines(True)
                         if not re.match(r"(# (HELP|TYPE) )?(sonde|process)_", line)]
                compare(self, directory / f"{name}.prom", "".join(lines))
        self.assertEqual(exporter.metrics().value('sonde_source_skipped_records_total{source="cli",kind="jobs"}'), 0)
        self.assertEqual(exporter.metrics().value('sonde_source_skipped_records_total{source="cli",kind="nodes"}'), 0)

    def test_no_golden_file_is_left_over(self):
        for path in HERE.glob("*/*.prom"):
            self.assertIn(path.stem, collector_names(), path)


for recording in sorted(HERE.glob("slurm-*")):
    setattr(Recorded, f"test_{recording.name.replace('-', '_')}",
            lambda self, directory=recording: self.check_recording(directory))


class Docs(unittest.TestCase):
    def test_the_list_of_metrics_is_current(self):
        made = subprocess.run([BUILD / "tests/golden/metrics_doc"], check=True, capture_output=True, text=True)
        compare(self, ROOT / "docs/metrics.md", made.stdout)


if __name__ == "__main__":
    import tap
    tap.main()
