#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The real exporter on a real Slurm, scraped by a real Prometheus: ./sandbox.

SONDE_SUITES names the Debian releases to try: bookworm has Slurm 22.05, trixie 24.11, sid 26.05. By default the two
that do not change any more.
"""
import collections
import json
import os
import pathlib
import shlex
import subprocess
import unittest
import urllib.parse

import sonde
from sonde import ROOT, Exporter, http_get, wait_until

SUITES = os.environ.get("SONDE_SUITES", "bookworm trixie").split()


def sandbox(suite, command, *arguments, **options):
    return subprocess.run([ROOT / "sandbox", command, "--suite", suite, *arguments],
                          capture_output=True, text=True, **options)


class Slurm:
    """One suite's cluster, up and seeded; ended at the end unless it was up before."""

    def __init__(self, suite):
        self.suite = suite
        self.was_up = sandbox(suite, "status").returncode == 0
        for command in ("up", "seed"):
            done = sandbox(suite, command)
            if done.returncode == 3:
                raise unittest.SkipTest(f"no sandbox here: {done.stderr or done.stdout}")
            assert done.returncode == 0, f"sandbox {command}: {done.stdout}{done.stderr}"
        self.env = {}
        for line in sandbox(suite, "env").stdout.splitlines():
            name, value = shlex.split(line)[0].split("=", 1)
            self.env[name] = value

    def run(self, *command, **options):
        return subprocess.run([ROOT / "sandbox", "shell", "--suite", self.suite, *command],
                              capture_output=True, text=True, check=options.pop("check", True), **options)

    def lines(self, *command):
        return self.run(*command).stdout.splitlines()

    def end(self):
        if not self.was_up:
            sandbox(self.suite, "down")


class OnSlurm:
    """The tests; a class for each suite is made below."""

    suite = None

    @classmethod
    def setUpClass(cls):
        cls.slurm = Slurm(cls.suite)
        cls.addClassCleanup(cls.slurm.end)
        cls.exporter = Exporter("--slurm.poll-limit=1ms", path=cls.slurm.env["SANDBOX_BIN"])
        cls.addClassCleanup(cls.exporter.stop)

    def while_at_rest(self, ask_slurm, compare):
        """Compares at a moment when Slurm gives the same answer before and after the scrape."""
        def moment():
            before = ask_slurm()
            answer = self.exporter.metrics()
            return (before, answer) if ask_slurm() == before else None
        compare(*wait_until(moment, "a moment in which nothing changes"))

    def test_jobs_by_state_are_those_of_squeue(self):
        def compare(states, answer):
            for state, count in collections.Counter(states).items():
                self.assertEqual(answer.value(f'slurm_job_count_per_state{{state="{state}"}}'), count, state)
            total = sum(float(v) for k, v in answer.samples().items() if k.startswith("slurm_job_count_per_state{"))
            self.assertEqual(total, len(states))
        self.while_at_rest(lambda: self.slurm.lines("squeue", "-h", "-a", "-r", "-t", "all", "-o", "%T"), compare)

    def test_each_users_jobs_are_those_of_squeue_and_hostile_names_forge_nobody(self):
        def compare(rows, answer):
            expected = collections.Counter(tuple(row.split(" ")) for row in rows)
            found = {}
            for (user, state), count in expected.items():
                series = f'slurm_user_state_total{{username="{user}",state="{state}"}}'
                self.assertEqual(answer.value(series), count, series)
                found[series] = True
            users = [k for k in answer.samples() if k.startswith("slurm_user_state_total{")]
            self.assertEqual(sorted(users), sorted(found))
            self.assertIn("mallory", {user for user, _ in expected})
            for kind in ("jobs", "nodes"):
                self.assertEqual(answer.value(f'sonde_source_skipped_records_total{{source="cli",kind="{kind}"}}'), 0)
        self.while_at_rest(lambda: self.slurm.lines("squeue", "-h", "-a", "-r", "-t", "all", "-o", "%u %T"), compare)

    def test_pending_reasons_are_those_of_squeue(self):
        def compare(rows, answer):
            expected = collections.Counter(row.split(":")[0] for row in rows)
            for reason, count in expected.items():
                if reason == "ReqNodeNotAvail, UnavailableNodes":
                    reason = f"({reason})"  # as prometheus-slurm-exporter spells it
                self.assertEqual(answer.value(f'slurm_pending_reason_total{{reason="{reason}"}}'), count)
            self.assertGreaterEqual(len(expected), 8)
        self.while_at_rest(lambda: self.slurm.lines("squeue", "-h", "-a", "-r", "-t", "PD", "-o", "%r"), compare)

    def test_nodes_and_cpus_are_those_of_sinfo(self):
        def compare(rows, answer):
            nodes = {row.split()[0]: row.split()[1:] for row in rows}
            states = collections.Counter(state.rstrip("*~#!%$@^-+") for state, _, _ in nodes.values())
            for state, count in states.items():
                self.assertEqual(answer.value(f'slurm_node_count_per_state{{state="{state}"}}'), count, state)
            cpus = [[int(part) for part in cpus.split("/")] for _, cpus, _ in nodes.values()]
            self.assertEqual(answer.value("slurm_cpus_total"), sum(c[3] for c in cpus))
            self.assertEqual(answer.value("slurm_cpus_idle"), sum(c[1] for c in cpus))
            memory = sum(int(memory) << 20 for _, _, memory in nodes.values())
            self.assertEqual(answer.value("slurm_mem_real"), memory)
        self.while_at_rest(lambda: sorted(set(self.slurm.lines("sinfo", "-h", "-a", "-N", "-o", "%N %T %C %m"))),
                           compare)

    def test_partitions_are_those_of_sinfo(self):
        def compare(rows, answer):
            expected = collections.Counter()
            for row in rows:
                partition, cpus = row.split()
                expected[partition] += int(cpus)
            for partition, cpus in expected.items():
                self.assertEqual(answer.value(f'slurm_partition_total_cpus{{partition="{partition}"}}'), cpus)
        self.while_at_rest(lambda: self.slurm.lines("sinfo", "-h", "-a", "-N", "-o", "%R %c"), compare)

    def test_memory_allocated_is_what_slurm_allocated(self):
        def ask():
            return [int(dict(field.split("=", 1) for field in line.split() if "=" in field)["AllocMem"])
                    for line in self.slurm.lines("scontrol", "-o", "show", "nodes")]
        self.while_at_rest(ask, lambda allocated, answer: self.assertEqual(
            answer.value("slurm_mem_alloc"), sum(allocated) << 20))

    def test_promtool_finds_nothing_but_what_older_names_bring(self):
        answer = self.exporter.metrics()
        done = self.slurm.run("promtool", "check", "metrics", input=answer.text, check=False)
        findings = {line for line in (done.stdout + done.stderr).splitlines() if line.strip()}
        known = set(pathlib.Path(__file__).with_name("promtool.txt").read_text().splitlines())
        # a rule that promtool has dropped between 2.42 and 2.53
        dropped = {line for line in known if "metric name should not include type" in line}
        self.assertEqual(findings | dropped, known)
        self.assertNotIn("sonde_", done.stdout + done.stderr)

    def test_prometheus_scrapes_it(self):
        target = pathlib.Path(self.slurm.env["SANDBOX_TARGETS"], "sonde-test.json")
        target.write_text(json.dumps([{"targets": [f"127.0.0.1:{self.exporter.port}"]}]))
        self.addCleanup(target.unlink)

        def query(expression):
            url = f"{self.slurm.env['SANDBOX_PROMETHEUS']}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
            return [float(row["value"][1]) for row in json.loads(http_get(url).text)["data"]["result"]]
        instance = f'instance="127.0.0.1:{self.exporter.port}"'
        wait_until(lambda: query(f"up{{{instance}}}") == [1], "Prometheus finds it up", 60)
        wait_until(lambda: query(f"slurm_cpus_total{{{instance}}}"), "its metrics are there", 60)
        self.assertEqual(query(f"slurm_cpus_total{{{instance}}}"), [self.exporter.metrics().value("slurm_cpus_total")])
        self.assertEqual(query(f"scrape_samples_scraped{{{instance}}} > 50") != [], True)

    def test_a_controller_that_hangs_is_survived(self):
        up = 'sonde_source_up{source="cli",kind="jobs"}'
        exporter = self.enterContext(Exporter("--slurm.poll-limit=1ms", "--slurm.timeout=1s",
                                              path=self.slurm.env["SANDBOX_BIN"]))
        self.assertEqual(exporter.metrics().value(up), 1)
        self.slurm.run("pkill", "-STOP", "slurmctld")
        try:
            answer = wait_until(lambda: (a := exporter.metrics(X_Prometheus_Scrape_Timeout_Seconds="2"))
                                and a.value(up) == 0 and a, "noticed")
            self.assertIn('slurm_job_count_per_state{state="RUNNING"}', answer.samples())
        finally:
            self.slurm.run("pkill", "-CONT", "slurmctld")
        wait_until(lambda: exporter.metrics().value(up) == 1, "works again by itself", 60)


for suite in SUITES:
    globals()[f"On_{suite}"] = type(f"On_{suite}", (OnSlurm, unittest.TestCase), {"suite": suite})


if __name__ == "__main__":
    import tap
    tap.main()
