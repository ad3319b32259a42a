#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""sonde admin record, and --source=replay: what is written when, how it ends, what is said of it."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import unittest

from clock import Clock
from sonde import AS_AT_A_TERMINAL, DEADLINE, SONDE, Exporter, FakeCommands, job, wait_until

SIM = "--source=sim:nodes=4,jobs=20"
KINDS = ["associations", "config", "diag", "jobs", "licenses", "nodes", "reservations", "shares"]


def record(*arguments, path=None):
    environment = dict(os.environ, PATH=f"{path}:{os.environ['PATH']}") if path else None
    return subprocess.run([SONDE, "admin", "record", *arguments], capture_output=True, text=True,
                          timeout=DEADLINE, env=environment)


class Record(unittest.TestCase):
    def setUp(self):
        self.directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory())) / "recording"

    def names(self):
        return sorted(path.name for path in self.directory.iterdir())

    def test_one_look_is_taken_at_everything(self):
        done = record(SIM, self.directory)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.names(), [f"000001-{kind}.json" for kind in KINDS])
        for kind in KINDS:
            self.assertRegex(done.stdout, rf"(?m)^  {kind} +1 file +\d+ bytes$")
            self.assertEqual(json.loads((self.directory / f"000001-{kind}.json").read_text())["kind"], kind)

    def start_long(self, directory, *starter):
        """One that takes a look whenever the clock is moved on by a second."""
        clock = self.enterContext(Clock(stands=1800000000))
        process = subprocess.Popen(
            [*AS_AT_A_TERMINAL, *starter, SONDE, "admin", "record", SIM, "--interval=1s", "--duration=1h", directory],
            stdout=subprocess.PIPE, text=True, env=dict(os.environ, **clock.env))
        self.addCleanup(process.kill)
        return process, clock

    @staticmethod
    def wait_look(directory, number):
        wait_until(pathlib.Path(directory, f"{number:06}-licenses.json").exists, f"look {number}")

    def test_a_signal_ends_a_long_one_cleanly(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number), tempfile.TemporaryDirectory() as directory:
                process, clock = self.start_long(directory)
                self.wait_look(directory, 1)
                clock.advance(1)
                self.wait_look(directory, 2)
                process.send_signal(number)
                said = process.communicate(timeout=DEADLINE)[0]
                self.assertEqual(process.returncode, 0)
                self.assertRegex(said, r"(?m)^  jobs +2 files")
                self.assertRegex(said, r"(?m)^  config +1 file ")
                self.assertEqual([path for path in pathlib.Path(directory).iterdir() if path.suffix != ".json"], [])

    def test_a_signal_ends_one_that_waits_for_slurm(self):
        started = self.directory.parent / "started"
        commands = self.enterContext(FakeCommands(sinfo=f"touch {started}; exec sleep 1000"))
        process = subprocess.Popen(
            [SONDE, "admin", "record", "--source=cli", "--slurm.timeout=1h", self.directory],
            stdout=subprocess.PIPE, text=True, env=dict(os.environ, PATH=f"{commands.path}:{os.environ['PATH']}"))
        wait_until(started.exists, "sinfo was asked")
        process.send_signal(signal.SIGTERM)
        self.assertIn("nothing was recorded", process.communicate(timeout=DEADLINE)[0])
        self.assertEqual(process.returncode, 1)

    def test_a_signal_that_nohup_ignores_does_not_end_it(self):
        process, clock = self.start_long(self.directory, "env", "--ignore-signal=HUP")
        self.wait_look(self.directory, 1)
        process.send_signal(signal.SIGHUP)
        for look in (2, 3):
            clock.advance(1)
            self.wait_look(self.directory, look)
        process.terminate()
        process.communicate(timeout=DEADLINE)
        self.assertEqual(process.returncode, 0)

    def test_a_recording_is_not_added_to(self):
        self.assertEqual(record(SIM, self.directory).returncode, 0)
        before = self.names()
        done = record(SIM, self.directory)
        self.assertEqual(done.returncode, 1)
        self.assertIn("already holds a recording", done.stderr)
        self.assertEqual(self.names(), before)

    def test_what_could_not_be_had_is_told_with_the_reason(self):
        commands = self.enterContext(FakeCommands(squeue=f"answer '{job()}'", sdiag="echo out of order >&2; exit 1"))
        done = record("--source=cli", self.directory, path=commands.path)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stdout, "(?m)^  diag could not be had: .*out of order")
        self.assertNotIn("000001-diag.json", self.names())
        exporter = self.enterContext(Exporter(f"--source=replay:{self.directory}"))
        samples = exporter.metrics().samples()
        self.assertEqual(samples['slurm_account_job_state_total{account="physics",state="RUNNING"}'], "1")
        exporter.wait_log("nothing of kind diag was recorded")

    def test_nothing_that_slurm_says_moves_the_cursor_or_is_lost(self):
        commands = self.enterContext(FakeCommands(
            squeue=f"printf 'careful\\033[2J\\n' >&2; answer '{job()}'", sdiag="printf '\\033]0;x\\007one\\ntwo' >&2; exit 1"))
        done = record("--source=cli", self.directory, path=commands.path)
        self.assertRegex(done.stdout, r"\A[\n -~]*\Z")
        self.assertRegex(done.stdout, r"(?m)^  diag could not be had: .*one two$")
        self.assertRegex(done.stdout, r"(?m)^  jobs came with a warning: .*careful")

    def test_a_reason_that_is_that_of_all_kinds_is_told_once(self):
        done = record("--slurm.bin-path=/nonexistent", "--slurm.helper-dir=/nonexistent", self.directory)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout, r"\Anothing was recorded:\n  nodes, jobs, .*config could not be had: .*\n\Z")

    def test_without_slurm_nothing_is_recorded(self):
        done = record("--source=cli", "--slurm.bin-path=/nonexistent", self.directory)
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing was recorded", done.stdout)
        self.assertEqual(self.names(), [])

    def test_flags_that_are_wrong_are_refused(self):
        for flags in ([], ["a", "b"], ["--interval=0", "a"], ["--interval=1000w", "a"],
                      ["--duration=1000w", "a"], ["--slurm.timeout=10000w", "a"], ["--demo", "--source=cli", "a"]):
            with self.subTest(flags=flags):
                self.assertEqual(record(*flags).returncode, 2)

    def test_a_simulated_cluster_stays_marked_when_it_is_played_back(self):
        self.assertEqual(record(SIM, self.directory).returncode, 0)
        exporter = self.enterContext(Exporter(f"--source=replay:{self.directory}"))
        self.assertIn('simulated="true"', exporter.metrics().text)
        exporter.wait_log("the recording has ended")


if __name__ == "__main__":
    import tap
    tap.main()
