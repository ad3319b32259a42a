#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""That the numbers on /metrics do not depend on the door: each one against cli, on a real cluster at rest.

What a door cannot know is told by the tables of docs/sources.md; everything else must be the same.
SONDE_SUITES names the Debian releases to try, as for test_sandbox.py.
"""
import collections
import fnmatch
import re
import tempfile
import time
import unittest

from families import FLEETING, scrape_at_rest
from slurm import SUITES, Slurm, hostnames
from sonde import ROOT, Exporter, wait_until

ALWAYS_ASK = [f"--slurm.{kind}poll-limit=1ms"
              for kind in ("", "shares-", "associations-", "reservations-", "licenses-", "config-")]


# Of jobs: what AccountingStorageTRES does not list is checked by a test of its own.
OUTSIDE_THE_TRES = re.compile("slurm_((user|account|job)_gres_allocated|(partition|qos)_job_gres)")


def unknown_to(door, release):
    """The families that docs/sources.md says this door does not know: rows `door | releases | families | why`."""
    patterns = []
    for row in (ROOT / "docs/sources.md").read_text().splitlines():
        cells = [cell.strip() for cell in row.strip("| ").split("|")]
        if len(cells) != 4 or cells[0].strip("`") != door:
            continue
        first, last = re.fullmatch(r"(?:(\d\d\.\d\d) on|up to (\d\d\.\d\d)|all)", cells[1]).groups()
        if (not first or release >= tuple(map(int, first.split(".")))) and \
                (not last or release <= tuple(map(int, last.split(".")))):
            patterns += re.findall(r"`([^`]+)`", cells[2])
    return patterns


class Doors:
    """The tests; a class for each suite is made below."""

    suite = None
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm(cls.suite)
        cls.addClassCleanup(cls.slurm.end)
        cls.slurm.calm()
        cls.hold_gpus_of_two_nodes()
        cls.hold_gres_outside_the_tres()
        cls.stop_scheduling()
        helpers = tempfile.TemporaryDirectory()
        cls.addClassCleanup(helpers.cleanup)
        cls.slurm.write_helper(helpers.name)
        now = str(int(time.time()))
        flags = {"cli": [], "json": [], "libslurm": [f"--slurm.helper-dir={helpers.name}"],
                 "rest": [f"--slurm.rest-url=unix:{cls.slurm.env['SANDBOX_RESTD_SOCKET']}"]}
        cls.doors = {}
        for door, own in flags.items():
            cls.doors[door] = Exporter(f"--source={door}", *own, *ALWAYS_ASK, path=cls.slurm.env["SANDBOX_BIN"],
                                       env={"SONDE_CLOCK": now})
            cls.addClassCleanup(cls.doors[door].stop)

    @classmethod
    def hold_gpus_of_two_nodes(cls):
        done = cls.slurm.run("sbatch", "--parsable", "-D/", "-pgpu", "-N2", "-n2", "--gpus=3", "--mem=10", "-t30",
                             "-o/dev/null", "-Jpair", "--wrap", "sleep 1800")
        cls.pair = done.stdout.strip()
        cls.addClassCleanup(cls.slurm.run, "scancel", cls.pair)
        wait_until(lambda: cls.slurm.lines("squeue", "-h", "-tR", "-j", cls.pair, "-o%A"), "it runs")

    @classmethod
    def hold_gres_outside_the_tres(cls):
        """Of each node of two, of a GRES that AccountingStorageTRES does not list."""
        done = cls.slurm.run("sbatch", "--parsable", "-D/", "-pgpu", "-N2", "-n2", "--gres=nic:1", "--mem=10", "-t30",
                             "-o/dev/null", "-Jnics", "--wrap", "sleep 1800")
        cls.nics = done.stdout.strip()
        cls.addClassCleanup(cls.slurm.run, "scancel", cls.nics)
        wait_until(lambda: cls.slurm.lines("squeue", "-h", "-tR", "-j", cls.nics, "-o%A"), "it runs")

    @classmethod
    def stop_scheduling(cls):
        """Nothing starts any more; what still completes is waited for."""
        up = [line.split()[0] for line in cls.slurm.lines("sinfo", "-h", "-a", "-o", "%R %a") if line.endswith(" up")]
        for partition in up:
            cls.slurm.run("scontrol", "update", f"partitionname={partition}", "state=down")
            cls.addClassCleanup(cls.slurm.run, "scontrol", "update", f"partitionname={partition}", "state=up")
        wait_until(lambda: not cls.slurm.lines("squeue", "-h", "-a", "-t", "CG,CF"), "no job starts or ends")

    def differences(self, door):
        before, told, after = scrape_at_rest(self.doors["cli"], self.doors[door])
        beyond_cli = unknown_to("cli", self.slurm.release)
        beyond_door = unknown_to(door, self.slurm.release)
        words = []
        for name in sorted(name for name in before.keys() | told.keys() if name.startswith("slurm_")):
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in beyond_door):
                if told.get(name):
                    words.append(f"{name} is told, but docs/sources.md says that {door} does not know it")
                continue
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in beyond_cli):
                if not told.get(name):
                    words.append(f"{name} is not told, and docs/sources.md does not say why")
                continue
            for series in before.get(name, {}).keys() | told.get(name, {}).keys():
                if OUTSIDE_THE_TRES.fullmatch(name) and ("gres", "nic") in series:
                    continue
                low, high = sorted((before.get(name, {}).get(series, float("nan")),
                                    after.get(name, {}).get(series, float("nan"))))
                value = told.get(name, {}).get(series)
                if value is None or low != low or not FLEETING.fullmatch(name) and not low <= value <= high:
                    labels = ",".join(f'{label}="{text}"' for label, text in series)
                    words.append(f"{name}{{{labels}}} is {value} through {door}, through cli {low} to {high}")
        return "\n".join(words)

    def test_json_tells_what_cli_tells(self):
        self.assertEqual(self.differences("json"), "")

    def test_rest_tells_what_cli_tells(self):
        self.assertEqual(self.differences("rest"), "")

    def test_libslurm_tells_what_cli_tells(self):
        self.assertEqual(self.differences("libslurm"), "")

    def login_nodes(self, door):
        return self.doors[door].get("/metrics?profile=mila&collect[]=mila_jobs").families().get("slurm_login_nodes", {})

    def test_each_door_tells_where_jobs_were_submitted(self):
        told = self.login_nodes("cli")
        self.assertTrue(told)
        for door in ("json", "rest", "libslurm"):
            is_unknown = "slurm_login_nodes" in unknown_to(door, self.slurm.release)
            self.assertEqual(self.login_nodes(door), {} if is_unknown else told, door)

    def held_gpus(self):
        """(job, node, GPU) as scontrol shows each job by its id, so that a name can at most confuse what is read of its
        own job."""
        found = set()
        ids = self.slurm.lines("squeue", "-h", "-a", "-r", "-tR,S", "-o%A")
        for text in self.slurm.ask([f"scontrol -a -d -o show job {job_id}" for job_id in ids]):
            for job_id, rest in re.findall(r"^JobId=(\d+) (.*)", text, re.M):
                for nodes, gres in re.findall(r" Nodes=(\S+) CPU_IDs=\S* Mem=\d+ GRES=(\S+)", rest):
                    for first, last in re.findall(r"(\d+)(?:-(\d+))?", " ".join(re.findall(r"IDX:([-\d,]*)", gres))):
                        found.update((job_id, node, str(gpu)) for node in hostnames(nodes)
                                     for gpu in range(int(first), int(last or first) + 1))
        return found

    def test_every_door_that_tells_which_gpus_a_job_holds_tells_those_that_it_was_given(self):
        held = self.held_gpus()
        self.assertEqual({node for job_id, node, _ in held if job_id == self.pair}, {"g1", "g2"})
        self.assertEqual(len([job_id for job_id, *_ in held if job_id == self.pair]), 3)
        self.assertGreater(len({job_id for job_id, *_ in held}), 3)
        for door, exporter in self.doors.items():
            families = exporter.metrics().families()
            told = families.get("slurm_job_gpu_allocated", {})
            if "slurm_job_gpu_allocated" in unknown_to(door, self.slurm.release):
                self.assertEqual(told, {}, door)
                continue
            self.assertEqual({tuple(dict(series).values()) for series in told}, held, door)
            self.assertEqual(set(told.values()), {1}, door)
            allocated = collections.Counter()
            for (node, _), count in families["slurm_node_gpus_allocated"].items():
                allocated[node[1]] += count
            self.assertEqual(collections.Counter(node for _, node, _ in held), +allocated, door)

    def test_every_door_but_cli_tells_gres_of_running_jobs_that_are_not_in_the_tres(self):
        for door, exporter in self.doors.items():
            families = exporter.metrics().families()
            told = {series: count for series, count in families["slurm_job_gres_allocated"].items()
                    if dict(series)["gres"] == "nic"}
            is_text = door == "cli" or door == "json" and self.slurm.release < (21, 8)
            expected = {} if is_text else {(("gres", "nic"), ("job_id", self.nics), ("type", "none")): 2}
            self.assertEqual({tuple(sorted(series)): count for series, count in told.items()}, expected, door)
            nodes = {dict(series)["node"]: count for series, count in families["slurm_node_gres_allocated"].items()
                     if dict(series)["gres"] == "nic"}
            self.assertEqual(nodes, {"g1": 1, "g2": 1}, door)

    def test_no_door_warns_fails_or_leaves_a_record_out(self):
        for door, exporter in self.doors.items():
            families = exporter.metrics().families()
            for name in ("sonde_source_skipped_records_total", "sonde_source_warnings_total"):
                for series, value in families[name].items():
                    self.assertEqual(value, 0, f"{door}: {name} {series}")
            down = {dict(series)["kind"] for series, value in families["sonde_source_up"].items() if not value}
            allowed = {"shares"} if door == "rest" and self.slurm.release < (23, 11) else set()
            self.assertEqual(down, allowed, f"{door}: {exporter.log()}")


for suite in SUITES:
    globals()[f"On_{suite}"] = type(f"On_{suite}", (Doors, unittest.TestCase), {"suite": suite})


if __name__ == "__main__":
    import tap
    tap.main()
