#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`sonde jobs` and `sonde usage` on a store of a few jobs (made_store.c), compared with files.

With SONDE_UPDATE_GOLDEN=1 the files are rewritten instead: ./check golden --update.
"""
import csv
import fcntl
import io
import json
import os
import pathlib
import pty
import shutil
import struct
import subprocess
import tempfile
import termios
import unittest

from capabilities import need
from sonde import BUILD, DEADLINE, SONDE
from test_golden import compare

HERE = pathlib.Path(__file__).resolve().parent / "questions"
OCTOBER = 1790812800  # 2026-10-01T00:00:00Z
NOW = OCTOBER + 348 * 3600

# file: what is asked
ASKED = {
    "jobs.txt": "jobs -a --from=2026-10-01",
    "jobs.csv": "jobs -a --from=2026-10-01 --format=csv",
    "jobs_all.csv": "jobs -a --from=2026-10-01 --format=csv --columns=all",
    "jobs.json": "jobs -a --from=2026-10-01 --format=json",
    "jobs_whole.json": "jobs --json cedar:100",
    "jobs_life.txt": "jobs --life cedar:100 106",
    "jobs_life.csv": "jobs --life cedar:100 106 --format=csv",
    "jobs_today.txt": "jobs -a",
    "jobs_columns.txt": "jobs 103 105+0 --columns=cluster,id,submit_time,wait_seconds,memory_bytes,exit,state",
    "usage.txt": "usage --from=2026-10-01 --to=2026-11-01",
    "usage.csv": "usage --from=2026-10-01 --to=2026-11-01 --by=cluster,account,user --format=csv --unit=seconds",
    "usage.json": "usage --from=2026-10-01 --to=2026-11-01 --by=gpu_type --format=json --unit=seconds",
    "usage_share.txt": "usage --from=2026-10-01T02:00 --to=2026-10-02T02:00 --by=cluster,account --allocations.file={0}/promised.yml",
    "usage_share_users.txt": "usage --from=2026-10-01 --to=2026-10-05 --by=account,user --cluster=cedar --allocations.file={0}/promised.yml",
    "usage_share.json": "usage --from=2026-10-01 --to=2026-10-02 --allocations.file={0}/promised.yml --format=json",
}


class Questions(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = cls.enterClassContext(tempfile.TemporaryDirectory())
        subprocess.run([BUILD / "tests/golden/made_store", f"{cls.directory}/store.db"], check=True)
        cls.env = dict(os.environ, SONDE_CLOCK=str(NOW), TZ="Europe/Berlin", SONDE_STORE=f"sqlite:{cls.directory}/store.db")
        cls.env.pop("COLUMNS", None)

    def run_sonde(self, *arguments, program=SONDE, **options):
        return subprocess.run([program, *arguments], capture_output=True, env=self.env, timeout=DEADLINE, **options)

    def ask(self, *arguments):
        done = self.run_sonde(*arguments)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        return done.stdout.decode()

    def refuse(self, status, sentence, *arguments, **options):
        done = self.run_sonde(*arguments, **options)
        self.assertIn(sentence, done.stderr.decode())
        self.assertEqual((done.returncode, done.stdout), (status, b""))
        self.assertEqual(done.stderr.count(b"\n"), 1)

    def ids(self, *arguments):
        return [f'{row["cluster"]}:{row["job_id"]}' for row in json.loads(self.ask("jobs", "-a", "--format=json", *arguments))["jobs"]]

    def test_a_pipe_is_as_wide_as_columns_says(self):
        whole = self.ask("jobs", "-a", "--from=2026-10-01")
        self.assertGreater(max(map(len, whole.splitlines())), 70)
        done = subprocess.run([SONDE, "jobs", "-a", "--from=2026-10-01"], capture_output=True, env=dict(self.env, COLUMNS="70"), timeout=DEADLINE)
        self.assertEqual(max(map(len, done.stdout.decode().splitlines())), 70)

    def test_filters(self):
        since = "--from=2026-10-01"
        self.assertEqual(self.ids(since, "--user=carol,dave"), ["cedar:105", "beluga:100"])
        self.assertEqual(self.ids(since, "-u", "alice", "-s", "R,PENDING"), ["cedar:107", "cedar:106"])
        self.assertEqual(self.ids(since, "--state=timeout", "-A", "chemistry"), ["cedar:104"])
        self.assertEqual(self.ids(since, "--partition=cpu", "--user=alice"), ["cedar:107"])
        self.assertEqual(self.ids(since, "-N", "n[2-3],g1"), ["cedar:104", "cedar:103", "cedar:101", "cedar:100"])
        self.assertEqual(self.ids(since, "--gpu-type=v100"), ["cedar:101"])
        self.assertEqual(self.ids(since, "-M", "beluga"), ["beluga:100"])
        self.assertEqual(self.ids(since, "--efficiency-below=10%"), ["cedar:101"])
        self.assertEqual(self.ids(since, "--efficiency-above=0.49", "--min-cpus=8"), ["cedar:103", "cedar:100"])
        self.assertEqual(self.ids(since, "--name=both"), ["cedar:105"])
        self.assertEqual(self.ids(since, "--min-elapsed=1d"), ["cedar:104", "cedar:100"])
        self.assertEqual(self.ids("-S", "2026-10-02", "-E", "2026-10-02T08:00"), ["cedar:102", "cedar:100"])
        self.assertEqual(self.ids("-S", "2026-10-02T00:00:01", "-E", "2026-10-02T08:00:01"), ["cedar:104", "cedar:103", "cedar:100"])
        self.assertEqual(self.ids("-S", "2026-10-02", "-E", "2026-10-02T03:00", "--ended"), ["cedar:102"])
        self.assertEqual(self.ids("--starttime=2026-10-02T04:00", "--endtime=2026-10-02T05:00", "--ended"), [])
        self.assertEqual(self.ids("103"), ["cedar:104", "cedar:103"])
        self.assertEqual(self.ids("103_2,105+0", "100"), ["cedar:104", "cedar:105", "beluga:100", "cedar:100"])
        self.assertEqual(self.ids("beluga:100"), ["beluga:100"])
        self.assertEqual(self.ids("4711"), [])

    def test_pages_follow_each_other(self):
        first = json.loads(self.ask("jobs", "-a", "--from=2026-10-01", "--format=json", "--limit=4"))
        second = json.loads(self.ask("jobs", "-a", "--from=2026-10-01", "--format=json", "--limit=100", f"--after={first['next']}"))
        self.assertEqual([len(first["jobs"]), len(second["jobs"])], [4, 5])
        self.assertIsNone(second["next"])
        self.assertEqual(len({row["key"] for row in first["jobs"] + second["jobs"]}), 9)
        done = self.run_sonde("jobs", "-a", "--from=2026-10-01", "--limit=4")
        self.assertEqual(done.stderr.decode(), f"there are more: --after={first['next']}\n")

    def ordinary_user(self):
        """Whom run_sonde() is to run as: root becomes nobody, who may not read the build directory if it is below /root."""
        if os.geteuid() != 0:
            return {}
        need("root")
        directory = pathlib.Path(self.directory)
        for program in ("sonde", "sonde-jobs"):
            shutil.copy(BUILD / "src" / program, directory)
        for path in (directory, *directory.iterdir()):
            path.chmod(0o644 if path.suffix == ".db" else 0o755)
        return dict(program=directory / "sonde", user="nobody", group="nogroup", extra_groups=[])

    def test_jobs_are_those_of_who_asks(self):
        user = self.ordinary_user()
        done = self.run_sonde("jobs", "--format=json", "--from=2026-10-01", **user)
        self.assertEqual((done.returncode, json.loads(done.stdout)), (0, {"jobs": [], "next": None}))
        done = self.run_sonde("jobs", "--format=json", "100", **user)
        self.assertEqual(len(json.loads(done.stdout)["jobs"]), 2)
        self.assertEqual(len(self.ids("--from=2026-10-01")), 9)

    def test_csv_is_read_back(self):
        rows = list(csv.DictReader(io.StringIO(self.ask("jobs", "-a", "--from=2026-10-01", "--format=csv"), newline="")))
        self.assertEqual(rows[5]["name"], "a name\nof two lines, and ?[31mcolour")
        self.assertEqual(rows[6]["name"], "'=HYPERLINK(\"http://x\")")
        self.assertEqual(rows[6]["start_time"], "2026-10-01T14:00:00+02:00")
        self.assertEqual({len(row) for row in rows}, {13})

    def test_a_table_fits_the_terminal(self):
        for width in (80, 160, 20):
            ours, theirs = pty.openpty()
            fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
            done = subprocess.Popen([SONDE, "jobs", "-a", "--from=2026-10-01"], stdout=theirs, env=self.env)
            os.close(theirs)
            text = b""
            try:
                while piece := os.read(ours, 4096):
                    text += piece
            except OSError:  # the other side is closed
                pass
            os.close(ours)
            self.assertEqual(done.wait(DEADLINE), 0)
            lines = text.decode().replace("\r\n", "\n").splitlines()
            self.assertEqual(len(lines), 10)
            self.assertLessEqual(max(map(len, lines)), width)
            self.assertIn("  RUNNING  " if width > 20 else "…", lines[2])
            self.assertEqual("ACCOUNT" in lines[0], width == 160)

    def test_mistakes_are_told(self):
        self.refuse(1, "there is no store", "jobs", "--store=/nowhere/store.db")
        self.refuse(2, "postgres", "usage", "--store=postgres://host/jobs")
        self.refuse(2, '"yester" is no time', "jobs", "--from=yester")
        self.refuse(2, "--from must lie before --to", "jobs", "--from=2026-10-02", "--to=2026-10-01")
        self.refuse(2, 'no state "GONE"', "jobs", "--state=GONE")
        self.refuse(2, "--node: ", "jobs", "--node=n[1-")
        self.refuse(2, "--node: ", "usage", "--node=n[1-")
        self.refuse(2, "--node: name at most 20000 nodes", "jobs", "--node=n[1-20000],m1")
        self.refuse(2, "name at most 1000 of one kind", "jobs", "--user=" + "anna," * 1001)
        self.refuse(2, '"12x" is no job', "jobs", "12x")
        self.refuse(2, "is no job", "jobs", "100", ":5")
        self.refuse(2, 'there is no "colour"', "jobs", "--columns=id,colour")
        self.refuse(2, 'there is no "colour"', "jobs", "--columns=id,colour", "--store=/nowhere/store.db")
        self.refuse(2, "is no part of a whole", "jobs", "--efficiency-below=much")
        self.refuse(2, "this is no key", "jobs", "--after=4711")
        self.refuse(2, 'there is no "colour"', "usage", "--by=account,colour")
        self.refuse(2, "add account to --by", "usage", "--by=user", f"--allocations.file={HERE}/promised.yml")
        self.refuse(2, "takes flags only", "usage", "100")
        self.refuse(2, "missing.yml", "usage", "--allocations.file=/missing.yml")
        with open("/dev/full", "w") as full:
            done = subprocess.run([SONDE, "jobs", "-a", "--from=2026-10-01"], stdout=full, stderr=subprocess.PIPE, env=self.env)
        self.assertEqual((done.returncode, done.stderr), (1, b"sonde jobs: cannot write: No space left on device\n"))

    def test_both_tell_of_themselves(self):
        for command in ("jobs", "usage"):
            self.assertIn("Which jobs", self.ask(command, "--help"))
            self.assertIn(f".TH SONDE\\-{command.upper()} 1", self.ask(command, "--man"))


def check_answer(test, name, question):
    text = test.ask(*question.format(HERE).split())
    if name.endswith(".json"):
        json.loads(text)
    if name.endswith(".csv"):
        test.assertTrue(all(line.endswith("\r\n") for line in text.splitlines(True)[:1] + text.splitlines(True)[-1:]))
    compare(test, HERE / name, text.replace("\r\n", "\n"))


for name, question in ASKED.items():
    setattr(Questions, f"test_{name.replace('.', '_')}",
            lambda self, name=name, question=question: check_answer(self, name, question))


if __name__ == "__main__":
    import tap
    tap.main()
