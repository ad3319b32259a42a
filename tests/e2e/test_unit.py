#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The systemd units: systemd's own checks, and each program under exactly what its unit gives."""
import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

import unit
from sonde import SONDE, Agent, Exporter, wait_until
from capabilities import need

MOST_EXPOSURE = 3.0  # 2.5 by systemd 252; newer ones know more to ask for


UNITS = (unit.AGENT, unit.EXPORTER, unit.WEB)


class Checks(unittest.TestCase):
    def setUp(self):
        need("systemd-tools")
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.units = [unit.write(directory.name, SONDE.parent, path) for path in UNITS]

    def test_systemd_finds_no_mistake(self):
        for path in self.units:
            done = subprocess.run(["systemd-analyze", "verify", "--man=no", path], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""), path.name)

    def test_they_are_little_exposed(self):
        for path in self.units:
            done = subprocess.run(["systemd-analyze", "security", "--offline=yes", "--no-pager", path],
                                  capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            exposure = float(re.search(r"Overall exposure level.*: ([\d.]+)", done.stdout)[1])
            self.assertLessEqual(exposure, MOST_EXPOSURE, done.stdout)


class Names(unittest.TestCase):
    def test_each_starts_its_program(self):
        for path, name in zip(UNITS, ("agent", "exporter", "web")):
            self.assertEqual(unit.command_line(path), ["@bindir@/sonde", name])

    def test_the_user_of_exporter_and_web_is_made_and_is_one(self):
        made = (unit.ROOT / "packaging/systemd/sonde.sysusers").read_text()
        name = re.search(r"^u (\S+) ", made, re.M)[1]
        for path in (unit.EXPORTER, unit.WEB):
            self.assertEqual(unit.settings(path)["User"], [name])
            self.assertEqual(unit.settings(path)["Group"], [name])

    def test_the_store_that_is_looked_for_is_in_the_state_directory(self):
        helped = subprocess.run([SONDE, "web", "--help"], capture_output=True, text=True, check=True).stdout
        for path in (unit.EXPORTER, unit.WEB):
            self.assertIn(f"sqlite:/var/lib/{unit.settings(path)['StateDirectory'][-1]}/sonde.db", helped)


class Runs(unittest.TestCase):
    def setUp(self):
        need("root")

    def test_the_agent_has_what_the_unit_gives_and_nothing_else(self):
        with Agent(starter=unit.prefix()) as agent:
            status = pathlib.Path(f"/proc/{agent.process.pid}/status").read_text()
            facts = dict(line.split(":\t", 1) for line in status.splitlines())
            mask = sum(1 << bit for bit in (2, 12, 19))  # DAC_READ_SEARCH, NET_ADMIN, SYS_PTRACE
            self.assertEqual(facts["Uid"].split()[0], str(unit.DYNAMIC_UID))
            for name in ("CapPrm", "CapEff", "CapBnd"):
                self.assertEqual(int(facts[name], 16), mask, name)
            self.assertEqual(int(facts["CapAmb"], 16), 0)
            self.assertEqual(facts["NoNewPrivs"], "1")
            self.assertNotIn("a capability is missing", agent.log())
            wait_until(lambda: agent.get("/-/ready").status == 200, "a first sample")
            self.assertEqual(agent.metrics().value("sonde_agent_up"), 1)

    def test_each_missing_capability_is_told_once_and_the_unit_gives_these(self):
        starter = ("setpriv", f"--reuid={unit.DYNAMIC_UID}", f"--regid={unit.DYNAMIC_UID}", "--clear-groups", "--")
        with Agent(starter=starter) as agent:
            wait_until(lambda: agent.get("/-/ready").status == 200, "a first sample")
            missing = re.findall(r'"a capability is missing" capability=(CAP_\w+) lost=', agent.log())
            self.assertEqual(len(missing), len(set(missing)), missing)
            for name in ("AmbientCapabilities", "CapabilityBoundingSet"):
                self.assertEqual(set(" ".join(unit.settings()[name]).split()), set(missing))

    def test_root_can_become_another_user_and_keep_them(self):
        with Agent(f"--user={unit.DYNAMIC_UID}") as agent:
            status = pathlib.Path(f"/proc/{agent.process.pid}/status").read_text()
            self.assertRegex(status, rf"\nUid:\t{unit.DYNAMIC_UID}\t{unit.DYNAMIC_UID}\t")
            self.assertRegex(status, r"\nCapEff:\t0000000000081004\n")

    def test_the_exporter_keeps_jobs_and_web_reads_them_with_no_capability(self):
        with tempfile.TemporaryDirectory() as directory:
            os.chown(directory, unit.DYNAMIC_UID, unit.DYNAMIC_UID)
            os.chmod(directory, int(unit.settings(unit.EXPORTER)["StateDirectoryMode"][-1], 8))
            store = f"--store=sqlite:{directory}/sonde.db"
            with Exporter("--demo", store, "--store.interval=1s", starter=unit.prefix(unit.EXPORTER)) as exporter, \
                    Web(store, starter=unit.prefix(unit.WEB)) as web:
                for program in (exporter, web):
                    status = pathlib.Path(f"/proc/{program.process.pid}/status").read_text()
                    self.assertRegex(status, rf"\nUid:\t{unit.DYNAMIC_UID}\t")
                    self.assertRegex(status, r"\nCapBnd:\t0+\n")
                    self.assertRegex(status, r"\nNoNewPrivs:\t1\n")

                def is_kept():
                    answer = web.get("/api/v1/jobs")
                    return answer.status == 200 and json.loads(answer.text)["jobs"]
                wait_until(is_kept, "jobs are kept")
            files = list(pathlib.Path(directory).iterdir())
            self.assertTrue(files)
            self.assertEqual({file.stat().st_mode & 0o027 for file in files}, {0})


class Web(Agent):
    """`sonde web`, likewise."""

    command = "web"


if __name__ == "__main__":
    import tap
    tap.main()
