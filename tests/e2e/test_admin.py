#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""sonde admin: its commands, and what the doctor says of sites in every condition.

SONDE_SUITES names the Debian releases to try, as for test_sandbox.py.
"""
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

from admin import Page, run_admin
from slurm import SUITES, Slurm
from sonde import AS_AT_A_TERMINAL, DEADLINE, SONDE, FakeCommands, job, node, wait_until
from capabilities import need

VERSION = "[ \"$1\" != --version ] || { echo 'slurm 22.05.8'; exit; }\n"
GOOD_SDIAG = "answer \"sdiag output at now ($(date +%s))\\nData since then (1699999999)\\n\""
NOW = 1790000000
NO_MUNGE = "--munge-socket=/nonexistent"


class AdminCommands(unittest.TestCase):
    def test_sonde_lists_it(self):
        done = subprocess.run([SONDE, "--help"], capture_output=True, text=True)
        self.assertRegex(done.stdout, r"(?m)^  admin +\S")

    def test_its_own_help_lists_what_it_can(self):
        done = run_admin("--help")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertRegex(done.stdout, r"(?m)^  doctor +\S")
        self.assertRegex(done.stdout, r"(?m)^  record +\S")
        bare = run_admin()
        self.assertEqual((bare.returncode, bare.stdout), (2, ""))
        self.assertEqual(bare.stderr, done.stdout)

    def test_a_misspelt_command_is_guessed(self):
        done = run_admin("docter")
        self.assertEqual((done.returncode, done.stderr),
                         (2, 'sonde admin: there is no command "docter"; did you mean "doctor"?\n'))
        done = run_admin("\033[2Jsomething else")
        self.assertEqual(done.returncode, 2)
        self.assertNotIn("\033", done.stderr)
        self.assertIn("sonde admin --help lists them", done.stderr)

    def test_the_version_is_that_of_sonde(self):
        version = subprocess.run([SONDE, "--version"], capture_output=True, text=True).stdout
        self.assertEqual(run_admin("--version").stdout, version)
        self.assertEqual(run_admin("doctor", "--version").stdout, version)

    def test_the_man_pages_are_whole(self):
        for command in ("doctor", "record"):
            page = run_admin(command, "--man").stdout
            self.assertIn(f"sonde\\-admin\\-{command} \\- ", page)
            self.assertIn(".SH EXIT STATUS", page)

    def test_a_wrong_flag_is_neither_a_warning_nor_a_failure(self):
        done = run_admin("doctor", "--slurm.timeot=1s")
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("did you mean --slurm.timeout?", done.stderr)

    def test_a_store_that_is_not_there_is_neither_brought_up_to_date_nor_made(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "sonde.bd")
            for flags in ([], ["--dry-run"]):
                done = run_admin("migrate", f"--store=sqlite:{path}", *flags)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertIn(f"there is no store {path}", done.stderr)
                self.assertEqual(list(pathlib.Path(directory).iterdir()), [])
            path.touch()
            self.assertRegex(run_admin("migrate", "--dry-run", f"--store={path}").stdout, "^This would be done:\n1: ")
            self.assertRegex(run_admin("migrate", f"--store={path}").stdout, "^This was done:\n1: ")
            self.assertEqual(run_admin("migrate", f"--store={path}").stdout, "The store is up to date.\n")


class DoctorOnFakes(unittest.TestCase):
    maxDiff = None

    def commands(self, squeue=f"answer '{job()}'", sinfo=f"answer '{node()}'", sdiag=GOOD_SDIAG, **others):
        commands = self.enterContext(FakeCommands(VERSION + squeue, VERSION + sinfo, VERSION + sdiag, **others))
        pathlib.Path(commands.path).chmod(0o755)
        return commands

    def doctor(self, *flags, **options):
        return Page(run_admin("doctor", NO_MUNGE, "--slurm.timeout=5m", *flags, **options))

    def assert_page_is_tidy(self, page):
        for line in page.text.splitlines():
            self.assertLessEqual(len(line), 80, line)
            self.assertRegex(line, r"^[ -~]*$")
        counts = page.counts()
        self.assertIn(f"{len(page.findings)} findings: {counts['ok']} ok, {counts['note']} note", page.text)
        self.assertEqual(page.status, 2 if counts["FAIL"] else 1 if counts["warn"] else 0, page.text)
        for mark, name, text, advice in page.findings:
            if mark in ("warn", "FAIL") and name != "rest":
                self.assertTrue(advice or re.search(r"[;:,] ", text), f"{name}: {text}")

    @unittest.skipIf(shutil.which("squeue"), "there is a Slurm here")
    def test_without_slurm_it_says_what_there_could_be(self):
        page = self.doctor()
        self.assert_page_is_tidy(page)
        self.assertEqual(page.status, 2)
        mark, _, advice = page.one("doors")
        self.assertEqual(mark, "FAIL")
        for way in ("slurm-client", "slurm.conf", "--slurm.prefix", "--slurm.rest-url", "--demo"):
            self.assertIn(way, advice)
        self.assertEqual([mark for mark, _, _ in page.of("cli")], ["note"])
        self.assertEqual(page.of("cluster"), [])
        self.assertEqual(page.one("munge")[0], "note", "nothing here needs it")

    def test_a_site_that_works_is_fine(self):
        page = self.doctor("--source=cli", path=self.commands().path)
        self.assert_page_is_tidy(page)
        self.assertEqual(page.one("commands")[:2], ("ok", "Slurm 22.05.8"))
        self.assertRegex(page.of("cli")[0][1], r"^1 nodes in \d\S* m?s, 1 jobs in \d\S* m?s, all 8 kinds in .*; CPU \d")
        self.assertEqual(page.one("cluster")[1], "fake, slurmctld 22.05.8")
        self.assertEqual(page.one("clock")[0], "ok")
        self.assertIn("it takes cli", page.one("exporter")[1])
        self.assertEqual(page.counts()["FAIL"], 0, page.text)

    def test_a_door_that_was_asked_for_and_is_closed_is_a_failure(self):
        commands = self.commands(squeue="echo 'slurm_load_jobs error: Invalid user id' >&2; exit 1")
        page = self.doctor("--source=cli", path=commands.path)
        mark, text, advice = page.one("cli")
        self.assertEqual(mark, "FAIL")
        self.assertIn("Invalid user id", text)
        self.assertIn("by hand", advice)
        self.assertEqual(page.status, 2)

    JSON_JOB = ('{"job_id":1,"job_state":"RUNNING","user_name":"alice","user_id":1000,"partition":"cpu","account":"physics",'
                '"features":"avx2","tasks":1,"nodes":"n1"}')

    def json_squeue(self, first, later):
        """A squeue whose JSON has these jobs when it is first asked, and those afterwards."""
        return (f'case "$*" in *--json*) [ -e "$0.asked" ] && jobs=\'{later}\' || jobs=\'{first}\'; : >"$0.asked"\n'
                'echo "{\\"meta\\":{\\"plugin\\":{\\"type\\":\\"openapi/v0.0.38\\"}},\\"errors\\":[],\\"jobs\\":[$jobs]}";;\n'
                f"*) answer '{job()}';; esac")

    def test_what_changed_between_two_readings_is_not_missing(self):
        nodes = '*" nodes --json") echo "{\\"errors\\":[],\\"nodes\\":[{\\"name\\":\\"n1\\"}]}";;'
        scontrol = FakeCommands.SCONTROL.replace('case "$*" in', f'case "$*" in\n{nodes}')
        # A job that asks for a feature, which the job that cli shows does not.
        stays = self.doctor(path=self.commands(squeue=self.json_squeue(self.JSON_JOB, self.JSON_JOB), scontrol=scontrol).path)
        self.assertEqual(stays.of("json")[0][0], "ok", stays.text)
        self.assertIn("jobs.features", " ".join(text for _, text, _ in stays.of("cli")), stays.text)
        ends = self.doctor(path=self.commands(squeue=self.json_squeue(self.JSON_JOB, ""), scontrol=scontrol).path)
        self.assertEqual(ends.of("json")[0][0], "ok", ends.text)
        self.assertNotIn("jobs.features", " ".join(text for _, text, _ in ends.of("cli")), ends.text)

    def test_slurmrestd_that_is_not_there_is_warned_of(self):
        page = self.doctor("--slurm.rest-url=http://127.0.0.1:1", path=self.commands().path)
        self.assertEqual(page.of("rest")[0][0], "warn")
        self.assertIn("127.0.0.1:1", page.of("rest")[0][1])

    def test_a_hung_slurm_is_bounded_and_leaves_no_child(self):
        hung = "echo $$ >>\"$(dirname \"$0\")/pids\"; exec sleep 1000"
        commands = self.commands(squeue=hung, sinfo=hung)
        page = self.doctor("--slurm.timeout=1s", path=commands.path)
        self.assert_page_is_tidy(page)
        mark, text, advice = page.one("cli")
        self.assertEqual(mark, "warn")
        self.assertIn("--slurm.timeout (1 s)", text)
        self.assertIn("scontrol ping", advice)
        self.assertEqual(page.one("doors")[0], "FAIL")
        self.assert_all_dead(commands)

    def assert_all_dead(self, commands):
        """All that came so far as to tell their pid; on a slow machine that may be none."""
        pids = pathlib.Path(commands.path, "pids")
        for pid in pids.read_text().split() if pids.exists() else []:
            wait_until(lambda: not os.path.exists(f"/proc/{pid}")
                       or open(f"/proc/{pid}/stat").read().rsplit(")")[1].split()[0] == "Z", "the hung one is dead")

    def test_an_interrupt_ends_it_at_once_and_leaves_no_child(self):
        commands = self.commands(sinfo="echo $$ >>\"$(dirname \"$0\")/pids\"; exec sleep 1000")
        pids = pathlib.Path(commands.path, "pids")
        for number in (signal.SIGINT, signal.SIGTERM):
            pids.unlink(missing_ok=True)
            process = subprocess.Popen([*AS_AT_A_TERMINAL, SONDE, "admin", "doctor", "--slurm.timeout=1h"], stdout=subprocess.PIPE,
                                       env=dict(os.environ, PATH=f"{commands.path}:{os.environ['PATH']}"))
            wait_until(lambda: pids.exists() and pids.read_text(), "it waits for sinfo")
            process.send_signal(number)
            self.assertEqual(process.wait(DEADLINE), 128 + number)
            process.stdout.close()
            self.assert_all_dead(commands)

    def test_a_clock_that_is_off_is_told(self):
        commands = self.commands(sdiag=f"answer 'sdiag output at now ({NOW + 100})\\nData since then (1699999999)\\n'")
        mark, text, advice = self.doctor("--source=cli", path=commands.path, env={"SONDE_CLOCK": str(NOW)}).one("clock")
        self.assertEqual(mark, "warn")
        self.assertIn("is 100 s behind slurmctld's", text)
        self.assertIn("NTP", advice)

    def test_what_private_data_hides_is_told_with_the_command_that_shows_it(self):
        need("root")
        users = "UserName=watcher(4711) DefAccount=ops DefWckey= AdminLevel=None\\n"
        scontrol = FakeCommands.SCONTROL.replace("PrivateData = none", "PrivateData = jobs,usage")
        scontrol = scontrol.replace("*\" assoc_mgr \"*)", f"*flags=users) answer '{users}' ;;\n*\" assoc_mgr \"*)")
        commands = self.commands(scontrol=scontrol)
        # The capability: sonde and these commands may lie where only root can look, in its home say.
        page = self.doctor("--source=cli", path=commands.path,
                           starter=["setpriv", "--reuid=4711", "--regid=4711", "--clear-groups",
                                    "--inh-caps=+dac_override", "--ambient-caps=+dac_override"])
        mark, text, advice = page.one("permissions")
        self.assertEqual((mark, page.status), ("warn", 1), page.text)
        self.assertIn("watcher (uid 4711)", text)
        self.assertIn("PrivateData hides jobs, usage", text)
        self.assertEqual(advice, "sacctmgr modify user watcher set adminlevel=operator")
        self.assert_page_is_tidy(page)

    def test_nothing_that_slurm_says_moves_the_cursor(self):
        commands = self.commands(squeue="printf '\\033[2J\\007<script>\\r\\n\\377' >&2; exit 1",
                                 sinfo=f"printf '\\033]0;title\\007' >&2; answer '{node()}'")
        page = self.doctor(path=commands.path)
        self.assert_page_is_tidy(page)

    def test_the_exporters_configuration_file_will_do(self):
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            file.write("web:\n  listen-address: [':9093']\ncollector.jobs: false\n"
                       f"slurm:\n  bin-path: {self.commands().path}\n  poll-limit: 20s\nsource: cli\n")
            file.flush()
            page = self.doctor(f"--config.file={file.name}")
        self.assertEqual(page.one("cluster")[1], "fake, slurmctld 22.05.8", page.errors)

    def test_a_token_that_everybody_can_read_is_warned_of(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("a secret")
            file.flush()
            os.chmod(file.name, 0o644)
            page = self.doctor("--slurm.rest-url=http://127.0.0.1:1", f"--slurm.rest-token-file={file.name}",
                               path=self.commands().path)
        self.assertIn(("warn", f"chmod o= {file.name}"), [(mark, advice) for mark, _, advice in page.of("token")])
        self.assertNotIn("a secret", page.text)

    def colours_on_a_terminal(self, **env):
        main, terminal = pty.openpty()
        process = subprocess.Popen([SONDE, "admin", "doctor", NO_MUNGE, "--source=cli"], stdout=terminal,
                                   env=dict(os.environ, PATH=f"{self.commands().path}:{os.environ['PATH']}", **env))
        os.close(terminal)
        shown = b""
        try:
            while piece := os.read(main, 65536):
                shown += piece
        except OSError:  # the other side is closed
            pass
        os.close(main)
        process.wait(DEADLINE)
        self.assertIn(b"commands", shown)
        return b"\033[" in shown

    def test_colours_are_for_terminals_that_want_them(self):
        self.assertTrue(self.colours_on_a_terminal(TERM="xterm", NO_COLOR=""))
        self.assertFalse(self.colours_on_a_terminal(TERM="xterm", NO_COLOR="1"))
        self.assertFalse(self.colours_on_a_terminal(TERM="dumb", NO_COLOR=""))


class DoctorOnSlurm:
    """The tests; a class for each suite is made below."""

    suite = None

    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm(cls.suite)
        cls.addClassCleanup(cls.slurm.end)

    def doctor(self, *flags, **options):
        return Page(run_admin("doctor", "--slurm.timeout=5m", *flags, **{"path": self.slurm.env["SANDBOX_BIN"], **options}))

    def test_the_cluster_is_as_slurm_says(self):
        page = self.doctor(f"--slurm.rest-url=unix:{self.slurm.env['SANDBOX_RESTD_SOCKET']}")
        version = self.slurm.env["SANDBOX_SLURM_VERSION"]
        self.assertEqual(page.one("commands")[:2], ("ok", f"Slurm {version}"))
        self.assertEqual(page.one("cluster")[1], f"sandbox, slurmctld {version}")
        self.assertEqual(page.one("clock")[0], "ok")
        self.assertIn(("ok", ""), [(mark, advice) for mark, _, advice in page.of("permissions")])
        nodes = len(set(self.slurm.lines("sinfo", "-h", "-a", "-N", "-o", "%N")))
        for door in ("rest", "json", "cli"):
            mark, text, _ = page.of(door)[0]
            self.assertEqual(mark, "ok", page.text)
            self.assertIn(f"{nodes} nodes in ", text)
        self.assertIn("it takes ", page.one("exporter")[1])
        self.assertLess(page.status, 2, page.text)

    def test_names_of_jobs_are_not_in_it(self):
        page = self.doctor()
        names = {name for name in self.slurm.run("squeue", "-h", "-a", "-t", "all", "-o", "%j").stdout.splitlines()
                 if len(name) > 6}
        self.assertGreater(len(names), 5)
        for name in names:
            self.assertNotIn(name, page.text)
        self.assertRegex(page.text, r"\A[\n -~]*\Z")
        self.assertLessEqual(max(len(line) for line in page.text.splitlines()), 80)

    def test_what_private_data_hides_is_warned_of(self):
        with self.slurm.private_data("jobs"), tempfile.TemporaryDirectory() as directory:
            starter = self.slurm.starter_as("monitor", directory)
            page = self.doctor(path=directory, starter=starter)
        mark, text, advice = page.one("permissions")
        self.assertEqual(mark, "warn", page.text)
        self.assertIn("PrivateData hides jobs", text)
        self.assertIn("adminlevel=operator", advice)
        self.assertEqual(page.status, 1, page.text)


for suite in SUITES:
    globals()[f"On_{suite}"] = type(f"On_{suite}", (DoctorOnSlurm, unittest.TestCase), {"suite": suite})


if __name__ == "__main__":
    import tap
    tap.main()
