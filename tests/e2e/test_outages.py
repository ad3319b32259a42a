#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Outages of a real Slurm, seen through every door: on a cluster of its own, whose daemons are killed and started.

SONDE_OUTAGES_SUITE names the Debian release to try it on.
"""
import os
import pathlib
import re
import tempfile
import unittest

from door import Door, follow
from slurm import Slurm
from sonde import wait_until

SUITE = os.environ.get("SONDE_OUTAGES_SUITE", "bookworm")
DOORS = ("libslurm", "rest", "json", "cli", "auto")
# Seconds, for MessageTimeout. The first is three times Slurm's own; after an outage, daemons that wait for a reply do so as long.
PATIENT, IMPATIENT = 30, 1
CONF = f"""MessageTimeout={PATIENT}
SlurmctldHost=backup(127.0.0.2)
SlurmctldTimeout=20
"""


def setUpModule():
    global CLUSTER
    CLUSTER = Slurm(SUITE, conf=CONF)
    unittest.addModuleCleanup(CLUSTER.end)
    # It would end in a minute, in the middle of a test.
    CLUSTER.run("scancel", "--name=timeout")


def set_message_timeout(seconds):
    """Of what begins from now on: Slurm's commands, daemons and the helper."""
    new = CLUSTER.conf.with_suffix(".new")
    new.write_text(re.sub(r"^MessageTimeout=.*$", f"MessageTimeout={seconds}", CLUSTER.conf.read_text(), flags=re.M))
    new.rename(CLUSTER.conf)


class Doors:
    """One exporter for each door; what happens to Slurm happens to all of them at once. What works has as long as it takes."""

    def setUp(self):
        helpers = self.enterContext(tempfile.TemporaryDirectory())
        self.settings = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()), "sonde.yml")
        self.doors = []
        self.set_timeout("1h")
        CLUSTER.write_helper(helpers)
        url = f"--slurm.rest-url=unix:{CLUSTER.env['SANDBOX_RESTD_SOCKET']}"
        flags = {"libslurm": [f"--slurm.helper-dir={helpers}"], "rest": [url],
                 "auto": [f"--slurm.helper-dir={helpers}", url]}
        for name in DOORS:
            self.doors.append(Door(CLUSTER, name, f"--config.file={self.settings}", "--slurm.stale-limit=1h", *flags.get(name, [])))
            self.addCleanup(self.doors[-1].stop)
        for door in self.doors:
            door.await_up()
            if door.name == "auto":
                door.await_door("libslurm")
            door.news()

    def set_timeout(self, timeout):
        self.settings.write_text(f"slurm.timeout: {timeout}\n")
        for door in self.doors:
            self.assertEqual(door.exporter.get("/-/reload", method="POST").status, 200)

    def suffer(self, end, error):
        """Waits until each door has noticed that Slurm is away, calls end(), waits until each works again."""
        try:
            set_message_timeout(IMPATIENT)
            self.check_outage(error)
        finally:
            set_message_timeout(PATIENT)
            end()
        for door in self.doors:
            door.await_up()
        for door in self.doors:
            with self.subTest(door.name):
                door.check_health(self)
                self.check_log(door, error)

    def check_outage(self, error):
        # Those who began before, the helper and slurmrestd, are as patient as ever: sonde gives them up.
        self.set_timeout("1s")
        for door in self.doors:
            door.await_up(0)
        # Those who begin from now on give up before sonde does, and say why.
        self.set_timeout("1h")
        for door in self.doors:
            wait_until(lambda: re.search(error, door.exporter.log()), f"{door.name} says {error}\n{door.exporter.log()}")
        before = {door: (door.value("sonde_source_age_seconds", kind="jobs"), door.steady()) for door in self.doors}
        for door in self.doors:
            wait_until(lambda: door.value("sonde_source_age_seconds", kind="jobs") > before[door][0], "its age grows")
            self.assertEqual(door.steady(), before[door][1], f"{door.name}: what was seen last is shown")

    def check_log(self, door, error):
        """What is wrong is told, and that it is over."""
        lines = self.check_told_once(door)
        self.assertTrue(any(line["msg"] == "source failed" and re.search(error, line["error"]) for line in lines), f"{error}: {lines}")
        self.assertIn("source works again", [line["msg"] for line in lines])

    def check_told_once(self, door):
        """Once until it works again or fails for another reason, which may be told of another kind; gives what was logged."""
        lines = door.news()
        told = {}
        for line in lines:
            if line["msg"] == "source failed":
                error, failures = told.get(line["kind"], ("", 0))
                self.assertTrue(line["error"] != error or int(line["failures"]) > failures + 1, lines)
                told[line["kind"]] = line["error"], int(line["failures"])
            elif line["msg"] == "source works again":
                self.assertIn(line["kind"], told, lines)
                del told[line["kind"]]
        # All doors are shut at once; but when they open again, another one may be the first to be found open.
        others = {line["msg"] for line in lines} - {"source failed", "source works again", "source warns", "configuration reloaded"}
        self.assertLessEqual(others, {"source chosen"} if door.name == "auto" else set())
        return lines


MUNGE = "munge|slurmrestd"  # slurmrestd does not tell, and may be on another host


class Outages(Doors, unittest.TestCase):
    """With one controller; the backup is configured and away."""

    def test_a_killed_controller_is_waited_for(self):
        CLUSTER.signal("slurmctld", "KILL")
        self.suffer(lambda: CLUSTER.start("slurmctld"), "slurmctld|slurm controller")

    def test_a_controller_that_hangs_is_waited_for(self):
        CLUSTER.signal("slurmctld", "STOP")
        self.suffer(lambda: CLUSTER.signal("slurmctld", "CONT"), "slurmctld|Socket timed out")

    def test_a_killed_munged_is_waited_for(self):
        CLUSTER.signal("munged", "KILL")
        self.suffer(lambda: CLUSTER.start("munged"), MUNGE)

    def test_a_munged_that_hangs_is_waited_for(self):
        CLUSTER.signal("munged", "STOP")
        self.suffer(lambda: CLUSTER.signal("munged", "CONT"), MUNGE)

    def test_a_reconfiguration_is_followed_in_silence(self):
        with CLUSTER.conf.open("a") as conf:
            conf.write("PartitionName=extra Nodes=c[1-2] State=UP\n")
        CLUSTER.run("scontrol", "reconfigure")
        follow(self.doors, "a new partition",
               lambda door: door.value("slurm_partition_total_cpus", partition="extra") == 8)
        for door in self.doors:
            self.assertEqual(door.news(), [], door.name)
            self.assertTrue(door.are_up())

    def test_nodes_that_come_with_a_restart_are_followed(self):
        cpus = self.doors[0].value("slurm_cpus_total")
        with CLUSTER.conf.open("a") as conf:
            conf.write("NodeName=new NodeHostname=sonde NodeAddr=127.0.0.1 Port=9 CPUs=64 State=DOWN\n"
                       "PartitionName=new Nodes=new State=UP\n")
        CLUSTER.signal("slurmctld", "TERM")
        CLUSTER.start("slurmctld")
        follow(self.doors, "a new node", lambda door: door.value("slurm_cpus_total") == cpus + 64)


class Failover(Doors, unittest.TestCase):
    """With two controllers."""

    @classmethod
    def setUpClass(cls):
        CLUSTER.start("backup")
        cls.addClassCleanup(CLUSTER.start, "slurmctld")
        cls.addClassCleanup(CLUSTER.signal, "slurmctld", "TERM")
        cls.addClassCleanup(CLUSTER.signal, "backup", "KILL")

    def test_the_backup_is_asked_when_the_controller_is_gone_and_then_the_controller_again(self):
        CLUSTER.signal("slurmctld", "KILL")
        CLUSTER.run("scontrol", "takeover")
        self.follow_a_change("backup")
        CLUSTER.start("slurmctld")
        self.follow_a_change("controller")
        for door in self.doors:
            with self.subTest(door.name):
                door.check_health(self)
                self.check_told_once(door)

    def follow_a_change(self, reason):
        change = ("scontrol", "update", "nodename=c1", "state=drain", f"reason={reason}")
        wait_until(lambda: CLUSTER.run(*change, check=False).returncode == 0, f"the {reason} answers")
        follow(self.doors, f"what the {reason} says",
               lambda door: door.are_up() and door.value("slurm_node_reason_info", reason=reason) == 1)


if __name__ == "__main__":
    import tap
    tap.main()
