#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The real exporter on recorded answers of real Slurms, compared with files, one per collector.

With SONDE_UPDATE_GOLDEN=1 the files are rewritten instead: ./check golden --update.
"""
import difflib
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import sonde
from lustre import Lustre, StandIn, vector
from sonde import BUILD, ROOT, SONDE, Exporter, FakeCommands, tables

UPDATE = os.environ.get("SONDE_UPDATE_GOLDEN") == "1"
HERE = pathlib.Path(__file__).resolve().parent
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


OF_LUSTRE = {"lustre", "lustre_jobs"}  # what no Slurm tells
OF_STORE = {"ended", "allocations"}
OF_MILA = {"mila_nodes", "mila_jobs"}  # their names clash with others'


def collector_names():
    return [row["name"] for row in tables()["collectors"] if row["name"] not in OF_LUSTRE | OF_STORE]


def path_of(name):
    return f"/metrics?collect[]={name}" + ("&profile=mila" if name in OF_MILA else "")


def self_names():
    """The families that sonde tells of itself, after those of the collectors."""
    return set(tables()["self"])


def lasting(text, left_out):
    """The lines that are the same in every run: without what sonde says of itself, and how long ago things were."""
    kept = []
    for line in text.splitlines(True):
        name = re.match(r"(?:# (?:HELP|TYPE) )?(\w+)", line)[1]
        if name not in left_out and re.sub("_(bucket|sum|count)$", "", name) not in left_out:
            kept.append(re.sub(r"^(\w+_age_seconds(?:\{.*\})?) [1-9]\d*$", r"\1 AGE", line))
    return "".join(kept)


def replay(directory):
    """Commands that answer as tests/golden/record has heard it."""
    framed = "sed \"s/{}/$token/g\" {}"
    return FakeCommands(
        squeue=framed.format(TOKEN, directory / "squeue.txt"),
        sinfo=f"""case "$*" in
*StateLong:*) {framed.format(TOKEN, directory / "sinfo-older.txt")} ;;
*) {framed.format(TOKEN, directory / "sinfo.txt")} ;;
esac""",
        sdiag=f"cat {directory}/sdiag.txt",
        sshare=f"cat {directory}/sshare.txt",
        scontrol=f"""case "$*" in
"--oneliner show reservations") cat {directory}/reservations.txt ;;
"--oneliner show licenses") cat {directory}/licenses.txt ;;
"--all --local --oneliner show partitions") cat {directory}/partitions.txt ;;
"show assoc_mgr flags=assoc,qos") cat {directory}/associations.txt ;;
"show assoc_mgr flags=users") cat {directory}/users.txt ;;
"show config") cat {directory}/config.txt ;;
*) echo "not recorded: scontrol $*" >&2; exit 1 ;;
esac""")


class Recorded(unittest.TestCase):
    def check_recording(self, directory):
        commands = self.enterContext(replay(directory))
        exporter = self.enterContext(Exporter("--trace.enabled", path=commands.path))
        for name in collector_names():
            with self.subTest(collector=name):
                answer = exporter.get(path_of(name))
                self.assertEqual(answer.status, 200, answer.text)
                compare(self, directory / f"{name}.prom", lasting(answer.text, self_names()))
        skipped = {series: value for series, value in exporter.metrics().samples().items()
                   if series.startswith("sonde_source_skipped_records_total")}
        self.assertEqual(set(skipped.values()), {"0"}, skipped)

    def test_no_golden_file_is_left_over(self):
        for path in HERE.glob("slurm-*/*.prom"):
            self.assertIn(path.stem, collector_names(), path)


for recording in sorted(HERE.glob("slurm-*")):
    setattr(Recorded, f"test_{recording.name.replace('-', '_')}",
            lambda self, directory=recording: self.check_recording(directory))


class OfLustre(unittest.TestCase):
    """What a Prometheus says, and a squeue in the format of prometheus-cluster-exporter."""

    def test_lustre(self):
        directory = HERE / "lustre"
        prometheus = self.enterContext(StandIn())
        for word, rows in json.loads((directory / "answers.json").read_text()).items():
            prometheus.put(word, dict(vector([]), data={"resultType": "vector", "result": rows}))
        commands = self.enterContext(FakeCommands(squeue=f"cat {directory}/squeue.txt"))
        lustre = self.enterContext(Lustre(f"--prometheus.url={prometheus.url}", "--collector.lustre_jobs", path=commands.path))
        for name in OF_LUSTRE:
            answer = lustre.get(f"/metrics?collect[]={name}")
            self.assertEqual(answer.value("cluster_exporter_scrape_ok"), 1)
            shown = re.sub(r"(?m)^(cluster_exporter_stage_execution_seconds\S+) .*$", r"\1 0", answer.text)
            compare(self, directory / f"{name}.prom", lasting(shown, self_names()))


def numbers(text):
    """The samples without their labels."""
    return sorted(re.sub(r"\{.*\}", "", line) for line in text.splitlines() if not line.startswith("#"))


class Replayed(unittest.TestCase):
    """What sonde admin record has written down, played back."""

    STILL = {"SONDE_CLOCK": "1800000000"}  # times come out as they went in

    def play(self, *flags):
        """Two exporters: on what Slurm answered, and on a recording of it."""
        commands = self.enterContext(replay(HERE / "slurm-24.11"))
        directory = self.enterContext(tempfile.TemporaryDirectory())
        recorded = subprocess.run(
            [SONDE, "admin", "record", "--source=cli", *flags, f"{directory}/recording"], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=dict(os.environ, **self.STILL, PATH=f"{commands.path}:{os.environ['PATH']}"))
        self.assertEqual(recorded.returncode, 0, recorded.stdout)
        self.assertNotIn("could not be had", recorded.stdout)
        sources = ["cli", f"replay:{directory}/recording"]
        return [self.enterContext(Exporter("--trace.enabled", f"--source={source}", path=commands.path, env=self.STILL))
                for source in sources]

    def collect(self, exporter, name):
        answer = exporter.get(path_of(name))
        self.assertEqual(answer.status, 200, answer.text)
        return lasting(answer.text, self_names())

    def test_a_recording_tells_what_slurm_told(self):
        slurm, recording = self.play()
        for name in collector_names():
            with self.subTest(collector=name):
                self.assertEqual(self.collect(slurm, name), self.collect(recording, name))

    def test_an_anonymised_one_has_the_same_numbers_and_none_of_the_names(self):
        slurm, recording = self.play("--anonymise")
        names = r"\b(alice|bob|carol|dave|erin|mallory|physics|chemistry)\b"
        found = set()
        for name in collector_names():
            with self.subTest(collector=name):
                told, replaced = self.collect(slurm, name), self.collect(recording, name)
                found.update(re.findall(names, told))
                self.assertNotRegex(replaced, names)
                self.assertEqual(numbers(told), numbers(replaced))
        self.assertGreater(len(found), 4)


class Docs(unittest.TestCase):
    def test_the_list_of_metrics_is_current(self):
        made = subprocess.run([BUILD / "tests/golden/metrics_doc"], check=True, capture_output=True, text=True)
        compare(self, ROOT / "docs/metrics.md", made.stdout)


if __name__ == "__main__":
    import tap
    tap.main()
