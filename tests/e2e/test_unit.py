#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The systemd unit of the agent: systemd's own checks, and the agent under exactly what it gives."""
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import unit
from sonde import SONDE, Agent, wait_until

MOST_EXPOSURE = 3.0  # 2.5 by systemd 252; newer ones know more to ask for


@unittest.skipUnless(shutil.which("systemd-analyze"), "systemd-analyze is not installed")
class Checks(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.unit = unit.write(directory.name, SONDE.parent)

    def analyze(self, *words):
        return subprocess.run(["systemd-analyze", *words, self.unit], capture_output=True, text=True)

    def test_systemd_finds_no_mistake(self):
        done = self.analyze("verify", "--man=no")
        self.assertEqual((done.returncode, done.stdout + done.stderr), (0, ""))

    def test_it_is_little_exposed(self):
        done = self.analyze("security", "--offline=yes", "--no-pager")
        self.assertEqual(done.returncode, 0, done.stderr)
        exposure = float(re.search(r"Overall exposure level.*: ([\d.]+)", done.stdout)[1])
        self.assertLessEqual(exposure, MOST_EXPOSURE, done.stdout)


class Names(unittest.TestCase):
    def test_it_gives_the_capabilities_that_the_agent_asks_for(self):
        source = (unit.ROOT / "src/cmd/agent.c").read_text()
        asked = set(re.findall(r'"(CAP_\w+)"', source))
        for name in ("AmbientCapabilities", "CapabilityBoundingSet"):
            self.assertEqual(set(" ".join(unit.settings()[name]).split()), asked)

    def test_it_starts_the_agent(self):
        self.assertEqual(unit.command_line(), ["@bindir@/sonde", "agent"])


@unittest.skipUnless(os.geteuid() == 0, "only root can give capabilities")
class Runs(unittest.TestCase):
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

    def test_a_missing_capability_is_told_once_with_what_is_lost(self):
        starter = ("setpriv", f"--reuid={unit.DYNAMIC_UID}", f"--regid={unit.DYNAMIC_UID}", "--clear-groups", "--")
        with Agent(starter=starter) as agent:
            wait_until(lambda: agent.get("/-/ready").status == 200, "a first sample")
            self.assertEqual(agent.log().count("a capability is missing"), 3)
            self.assertIn("CAP_NET_ADMIN", agent.log())

    def test_root_can_become_another_user_and_keep_them(self):
        with Agent(f"--user={unit.DYNAMIC_UID}") as agent:
            status = pathlib.Path(f"/proc/{agent.process.pid}/status").read_text()
            self.assertRegex(status, rf"\nUid:\t{unit.DYNAMIC_UID}\t{unit.DYNAMIC_UID}\t")
            self.assertRegex(status, r"\nCapEff:\t0000000000081004\n")


if __name__ == "__main__":
    import tap
    tap.main()
